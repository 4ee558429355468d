//! Stochastic gradient descent.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Signature, prepare, scalar};
use crate::error::Result;
use crate::kernels::cpu::update::Rule;
use crate::kernels::cpu::wide::Wide;
use crate::kernels::{Io, Kernel, Width};
use crate::ops::{Catalog, Cost, Effects, Family, Meta, Metas};

/// `(param, grad, lr, [decay], [buf, momentum, dampening])`: updates `param` and `buf`.
///
/// `g = grad + decay*param; buf = momentum*buf + (1-dampening)*g;`
/// `g = nesterov ? g + momentum*buf : buf; param -= lr*g` (SINGA's `opt.SGD`).
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Sgd {
    /// Whether there are inputs for a momentum buffer, a momentum and a dampening.
    pub momentum: bool,
    /// Whether to use Nesterov momentum; without momentum it has no effect.
    pub nesterov: bool,
    /// Whether there is a weight decay.
    pub weight_decay: bool,
}

impl Sgd {
    fn decay(&self) -> Option<usize> {
        self.weight_decay.then_some(3)
    }

    fn buffer(&self) -> Option<usize> {
        self.momentum.then_some(3 + self.weight_decay as usize)
    }

    fn rule(&self, io: &Io) -> Step {
        Step {
            lr: scalar(io, 2),
            decay: self.decay().map(|i| scalar(io, i)),
            momentum: self.buffer().map(|i| [scalar(io, i + 1), 1.0 - scalar(io, i + 2)]),
            nesterov: self.nesterov,
        }
    }
}

impl Catalog for Sgd {
    fn names() -> Vec<&'static str> {
        vec!["sgd"]
    }
}

impl Family for Sgd {
    fn name(&self) -> &'static str {
        "sgd"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let count = 3 + self.weight_decay as usize + 3 * self.momentum as usize;
        let moments = self.buffer();
        Signature { op: self.name(), inputs: count, moments: moments.as_slice(), counters: &[] }
            .infer(inputs)
    }

    fn effects(&self) -> Effects {
        Effects::updates(match self.buffer() {
            None => &[(0, 0)],
            Some(3) => &[(0, 0), (3, 1)],
            Some(_) => &[(0, 0), (4, 1)],
        })
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        Cost::elementwise(io, 6)
    }

    fn cpu(&self, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
        let family = self.clone();
        prepare!(self, io, self.buffer().as_slice(), width, move |io: &Io| family.rule(io))
    }
}

struct Step {
    lr: f64,
    decay: Option<f64>,
    /// Momentum, and 1 - dampening.
    momentum: Option<[f64; 2]>,
    nesterov: bool,
}

impl Rule for Step {
    #[inline(always)]
    fn step<A: Wide>(&self, p: &mut [A], g: &[A], [buffer, _]: [&mut [A]; 2]) {
        let lr = A::of(self.lr);
        let decay = self.decay.map(A::of);
        let decayed = |g: A, p: A| decay.map_or(g, |d| g + d * p);
        let Some(momentum) = self.momentum else {
            return p.iter_mut().zip(g).for_each(|(p, &g)| *p = *p - lr * decayed(g, *p));
        };
        let [momentum, fresh] = momentum.map(A::of);
        for ((p, &g), buffer) in p.iter_mut().zip(g).zip(buffer) {
            let g = decayed(g, *p);
            *buffer = (momentum * *buffer + fresh * g).flushed();
            *p = *p - lr * if self.nesterov { g + momentum * *buffer } else { *buffer };
        }
    }
}
