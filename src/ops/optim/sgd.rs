//! Stochastic gradient descent.

use serde::{Deserialize, Serialize};

use super::Signature;
use crate::error::Result;
use crate::ops::{Catalog, Cost, Effects, Family, Locality, Meta, Metas};

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
    /// The number of the input that holds the weight decay.
    pub fn decay(&self) -> Option<usize> {
        self.weight_decay.then_some(3)
    }

    /// The number of the input that holds the momentum buffer.
    pub fn buffer(&self) -> Option<usize> {
        self.momentum.then_some(3 + self.weight_decay as usize)
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

    fn locality(&self, _rank: usize) -> Locality {
        Locality::Element
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        Cost::elementwise(io, 6)
    }
}
