//! Softmax and log-softmax.

use serde::{Deserialize, Serialize};

use super::{Cost, Family, Locality, Meta, Metas, check_float, exactly};
use crate::error::{Error, Result};

/// x -> y: `exp(x) / sum(exp(x))` along an axis, or its logarithm (ONNX `Softmax`, `LogSoftmax`
/// from version 13). The greatest value is subtracted first; if it is infinite, the row is NaN. y
/// keeps the memory order of x.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Softmax {
    /// The axis along which the results (or their exponentials) add up to 1; -1 where it is the
    /// last, so that the operation is fused.
    pub axis: i64,
    /// Whether the logarithm is computed.
    pub log: bool,
}

/// (dy, y) -> dx: the gradient of [`Softmax`]: `y * (dy - sum(dy * y))`, or of its logarithm:
/// `dy - exp(y) * sum(dy)`. dx keeps the memory order of dy.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct SoftmaxGrad {
    /// The forward operation's axis.
    pub axis: i64,
    /// Whether the forward operation computed the logarithm.
    pub log: bool,
}

catalog!(Softmax => "softmax" "log_softmax", SoftmaxGrad => "softmax_grad" "log_softmax_grad");

impl Family for Softmax {
    fn name(&self) -> &'static str {
        if self.log { "log_softmax" } else { "softmax" }
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [x] = exactly(self.name(), inputs)?;
        check_float(self.name(), x)?;
        x.shape.axis(self.name(), self.axis)?;
        Ok(smallvec::smallvec![x.like(x.dtype)])
    }

    fn in_place(&self) -> &'static [(usize, usize)] {
        &[(0, 0)]
    }

    fn locality(&self) -> Locality {
        locality(self.axis)
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        Cost::elementwise(io, 24)
    }
}

impl Family for SoftmaxGrad {
    fn name(&self) -> &'static str {
        if self.log { "log_softmax_grad" } else { "softmax_grad" }
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [dy, y] = exactly(self.name(), inputs)?;
        check_float(self.name(), dy)?;
        let want = "two tensors of one dtype";
        crate::ensure!(dy.dtype == y.dtype, Error::dtype(self.name(), [dy.dtype, y.dtype], want));
        let want = "two tensors of one shape";
        crate::ensure!(dy.shape == y.shape, Error::shape(self.name(), [&dy.shape, &y.shape], want));
        dy.shape.axis(self.name(), self.axis)?;
        Ok(smallvec::smallvec![dy.like(dy.dtype)])
    }

    fn in_place(&self) -> &'static [(usize, usize)] {
        &[(0, 0), (1, 0)]
    }

    fn locality(&self) -> Locality {
        locality(self.axis)
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        Cost::elementwise(io, if self.log { 24 } else { 6 })
    }
}

/// Only -1 is the last axis also of an operand with more axes, beside which a region works on rows.
fn locality(axis: i64) -> Locality {
    if axis == -1 { Locality::Row } else { Locality::All }
}
