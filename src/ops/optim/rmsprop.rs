//! RMSProp.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Signature, prepare, scalar, second_moment};
use crate::error::Result;
use crate::kernels::cpu::update::Rule;
use crate::kernels::cpu::wide::Wide;
use crate::kernels::{Io, Kernel, Width};
use crate::ops::{Catalog, Cost, Effects, Family, Meta, Metas};

/// `(param, grad, lr, avg, rho, eps, [decay])`: updates `param` and `avg`.
///
/// `g = grad + decay*param; avg = rho*avg + (1-rho)*g*g; param -= lr*g / sqrt(avg+eps)`
/// (Hinton's lecture 6e; epsilon inside the root as in SINGA's `opt.RMSProp`).
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Rmsprop {
    /// Whether there is a weight decay.
    pub weight_decay: bool,
}

impl Catalog for Rmsprop {
    fn names() -> Vec<&'static str> {
        vec!["rmsprop"]
    }
}

impl Family for Rmsprop {
    fn name(&self) -> &'static str {
        "rmsprop"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let count = 6 + self.weight_decay as usize;
        Signature { op: self.name(), inputs: count, moments: &[3], counters: &[] }.infer(inputs)
    }

    fn effects(&self) -> Effects {
        Effects::updates(&[(0, 0), (3, 1)])
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        Cost::elementwise(io, 16)
    }

    fn cpu(&self, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
        let decay = self.weight_decay.then_some(6);
        prepare!(self, io, &[3], width, move |io: &Io| Step {
            lr: scalar(io, 2),
            rho: scalar(io, 4),
            eps: scalar(io, 5),
            decay: decay.map(|i| scalar(io, i)),
        })
    }
}

struct Step {
    lr: f64,
    rho: f64,
    eps: f64,
    decay: Option<f64>,
}

impl Rule for Step {
    #[inline(always)]
    fn step<A: Wide>(&self, p: &mut [A], g: &[A], [average, _]: [&mut [A]; 2]) {
        let [lr, rho, fresh, eps] = [self.lr, self.rho, 1.0 - self.rho, self.eps].map(A::of);
        let decay = self.decay.map(A::of);
        for ((p, &g), average) in p.iter_mut().zip(g).zip(average) {
            let g = decay.map_or(g, |d| g + d * *p);
            *average = second_moment(rho * *average + fresh * (g * g), self.eps);
            *p = *p - lr * g / (*average + eps).sqrt();
        }
    }
}
