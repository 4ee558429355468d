//! AdaGrad.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Signature, prepare, scalar};
use crate::error::Result;
use crate::kernels::cpu::update::Rule;
use crate::kernels::cpu::wide::Wide;
use crate::kernels::{Io, Kernel, Width};
use crate::ops::{Catalog, Cost, Effects, Family, Meta, Metas};

/// `(param, grad, lr, history, eps, [decay])`: updates `param` and `history`.
///
/// `g = grad + decay*param; history += g*g; param -= lr*g / sqrt(history+eps)`
/// (Duchi, Hazan, Singer 2011; epsilon inside the root as in SINGA's `opt.AdaGrad`).
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Adagrad {
    /// Whether there is a weight decay.
    pub weight_decay: bool,
}

impl Catalog for Adagrad {
    fn names() -> Vec<&'static str> {
        vec!["adagrad"]
    }
}

impl Family for Adagrad {
    fn name(&self) -> &'static str {
        "adagrad"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let count = 5 + self.weight_decay as usize;
        Signature { op: self.name(), inputs: count, moments: &[3], counters: &[] }.infer(inputs)
    }

    fn effects(&self) -> Effects {
        Effects::updates(&[(0, 0), (3, 1)])
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        Cost::elementwise(io, 16)
    }

    fn cpu(&self, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
        let decay = self.weight_decay.then_some(5);
        prepare!(self, io, &[3], width, move |io: &Io| Step {
            lr: scalar(io, 2),
            eps: scalar(io, 4),
            decay: decay.map(|i| scalar(io, i)),
        })
    }
}

struct Step {
    lr: f64,
    eps: f64,
    decay: Option<f64>,
}

impl Rule for Step {
    #[inline(always)]
    fn step<A: Wide>(&self, p: &mut [A], g: &[A], [history, _]: [&mut [A]; 2]) {
        let [lr, eps] = [self.lr, self.eps].map(A::of);
        let decay = self.decay.map(A::of);
        for ((p, &g), history) in p.iter_mut().zip(g).zip(history) {
            let g = decay.map_or(g, |d| g + d * *p);
            *history = *history + g * g;
            *p = *p - lr * g / (*history + eps).sqrt();
        }
    }
}
