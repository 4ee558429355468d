//! Adam and AdamW.

use serde::{Deserialize, Serialize};

use super::Signature;
use crate::error::Result;
use crate::ops::{Catalog, Cost, Effects, Family, Locality, Meta, Metas};

/// `(param, grad, lr, m, v, beta1, beta2, eps, step, [decay])`: updates `param`, `m` and `v`.
///
/// `t = step + 1; g = grad + decay*param; m = beta1*m + (1-beta1)*g; v = beta2*v + (1-beta2)*g*g;`
/// `param -= lr * m/(1-beta1^t) / (sqrt(v/(1-beta2^t)) + eps)` (Kingma, Ba 2015). Decoupled, the
/// decay stays out of the gradient and `param -= lr*decay*param` comes first (AdamW; Loshchilov,
/// Hutter 2019). `step` is an int32 counted from 0.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Adam {
    /// Whether the weight decay is AdamW's.
    pub decoupled: bool,
    /// Whether there is a weight decay.
    pub weight_decay: bool,
}

/// The number of the input that holds the step.
pub const STEP: usize = 8;

impl Catalog for Adam {
    fn names() -> Vec<&'static str> {
        vec!["adam"]
    }
}

impl Family for Adam {
    fn name(&self) -> &'static str {
        "adam"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let count = 9 + self.weight_decay as usize;
        Signature { op: self.name(), inputs: count, moments: &[3, 4], counters: &[STEP] }
            .infer(inputs)
    }

    fn effects(&self) -> Effects {
        Effects::updates(&[(0, 0), (3, 1), (4, 2)])
    }

    fn checked(&self) -> &'static [usize] {
        &[STEP]
    }

    fn locality(&self, _rank: usize) -> Locality {
        Locality::Element
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        Cost::elementwise(io, 24)
    }
}
