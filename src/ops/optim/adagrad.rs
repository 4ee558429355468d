//! AdaGrad.

use serde::{Deserialize, Serialize};

use super::Signature;
use crate::error::Result;
use crate::ops::{Catalog, Cost, Effects, Family, Locality, Meta, Metas};

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

    fn locality(&self, _rank: usize) -> Locality {
        Locality::Element
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        Cost::elementwise(io, 16)
    }
}
