//! Updates whose gradient is a matrix product used nowhere else, as graphs run them.

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::{Adagrad, Adam, Rmsprop, Sgd};
use crate::error::{Error, Result};
use crate::ops::gemm::Matmul;
use crate::ops::{Cost, Effects, Family, Kind, Meta, Metas};

/// An optimizer's update with the gradient `a b`: inputs as of the update, but with `a` (M, K) in
/// place of the gradient and `b` (K, N) after all others; outputs as of the update. Bit-identical
/// to [`Matmul`] and the update run in turn; the gradient takes the memory of only a few of its
/// rows.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct MatmulUpdate {
    /// The update.
    #[serde(flatten)]
    pub update: Update,
}

/// An optimizer's update.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(tag = "update", rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Update {
    Adagrad(Adagrad),
    Adam(Adam),
    Rmsprop(Rmsprop),
    Sgd(Sgd),
}

impl Update {
    /// The operation as an update, if it is one.
    pub fn of(kind: &Kind) -> Option<Update> {
        Some(match kind {
            Kind::Adagrad(update) => Update::Adagrad(update.clone()),
            Kind::Adam(update) => Update::Adam(update.clone()),
            Kind::Rmsprop(update) => Update::Rmsprop(update.clone()),
            Kind::Sgd(update) => Update::Sgd(update.clone()),
            _ => return None,
        })
    }

    /// The update as an operation on its own.
    pub fn kind(&self) -> Kind {
        match self.clone() {
            Update::Adagrad(update) => update.into(),
            Update::Adam(update) => update.into(),
            Update::Rmsprop(update) => update.into(),
            Update::Sgd(update) => update.into(),
        }
    }

    fn family(&self) -> &dyn Family {
        match self {
            Update::Adagrad(update) => update,
            Update::Adam(update) => update,
            Update::Rmsprop(update) => update,
            Update::Sgd(update) => update,
        }
    }
}

catalog!(MatmulUpdate => "matmul_update");

impl MatmulUpdate {
    /// The inputs of the update, with `gradient`, the product of a and b, in its place.
    pub fn inputs<'a>(inputs: &[&'a Meta], gradient: &'a Meta) -> SmallVec<[&'a Meta; 8]> {
        let mut inputs = SmallVec::from_slice(&inputs[..inputs.len() - 1]);
        inputs[1] = gradient;
        inputs
    }
}

impl Family for MatmulUpdate {
    fn name(&self) -> &'static str {
        "matmul_update"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let got = inputs.len();
        let arity = || Error::Arity { op: self.name().into(), got, want: "4 or more".into() };
        crate::ensure!(got >= 4, arity());
        let product = Matmul.infer(&[inputs[1], inputs[got - 1]])?.remove(0);
        self.update.family().infer(&Self::inputs(inputs, &product))
    }

    fn effects(&self) -> Effects {
        self.update.family().effects()
    }

    fn checked(&self) -> &'static [usize] {
        self.update.family().checked()
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        let (param, a) = (io[0], io[1]);
        let depth = a.shape.last().copied().unwrap_or(0) as u64;
        let update = Cost::elementwise(io, 6);
        Cost { flops: update.flops + 2 * param.numel() as u64 * depth, ..update }
    }
}
