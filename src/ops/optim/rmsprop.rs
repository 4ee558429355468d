//! RMSProp.

use serde::{Deserialize, Serialize};

use super::Signature;
use crate::error::Result;
use crate::ops::{Catalog, Cost, Effects, Family, Locality, Meta, Metas};

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

    fn locality(&self, _rank: usize) -> Locality {
        Locality::Element
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        Cost::elementwise(io, 16)
    }
}
