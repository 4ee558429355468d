//! Softmax followed by cross entropy, in one numerically stable operation.

use serde::{Deserialize, Serialize};

use super::{Cost, Family, Meta, Metas, check_float, check_meta, exactly};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::Shape;

/// (x, t) -> (loss, lse) for logits x of shape (N, C): the mean over the rows of the cross
/// entropy between softmax(x) and the targets, shape (1,), and for each row its maximum m and
/// log(sum(exp(x - m))), float64 of shape (N, 2), for the gradient. Their sum would lose the latter
/// where logits are large. Rows with the label `ignored` do not count; the mean is NaN if none does.
///
/// t of shape (N,) or (N, 1): class indices, of any int or float dtype. An index out of range is an
/// [`Error::Index`], a fractional one an [`Error::Value`]. Otherwise t has x's shape and dtype:
/// weights of the classes, each row divided by its sum, not validated.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct SoftmaxCrossEntropy {
    /// The label of rows that do not count, which may be no class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignored: Option<i64>,
}

/// (dloss, x, t, lse) -> dx: the gradient of [`SoftmaxCrossEntropy`] with respect to x, in the
/// memory order of x. t has no gradient.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct SoftmaxCrossEntropyGrad {
    /// That of the loss.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignored: Option<i64>,
}

/// Whether t holds class indices rather than weights, by its shape, for x of shape (N, C).
///
/// # Errors
/// [`Error::Shape`] and [`Error::DType`] where it can be neither.
pub fn has_labels(op: &'static str, x: &Meta, t: &Meta) -> Result<bool> {
    check_float(op, x)?;
    crate::ensure!(x.shape.rank() == 2, Error::shape(op, [&x.shape], "logits of shape (N, C)"));
    let n = x.shape[0];
    if t.shape == Shape::from([n]) || t.shape == Shape::from([n, 1]) {
        let no_bool = || Error::dtype(op, [x.dtype, t.dtype], "class indices of an int dtype");
        crate::ensure!(t.dtype != DType::Bool, no_bool());
        return Ok(true);
    }
    let want = || format!("targets of shape ({n},), ({n}, 1) or {}", x.shape);
    crate::ensure!(t.shape == x.shape, Error::shape(op, [&x.shape, &t.shape], want()));
    let want = || format!("weights of dtype {}", x.dtype);
    crate::ensure!(t.dtype == x.dtype, Error::dtype(op, [x.dtype, t.dtype], want()));
    Ok(false)
}

catalog!(
    SoftmaxCrossEntropy => "softmax_cross_entropy",
    SoftmaxCrossEntropyGrad => "softmax_cross_entropy_grad"
);

impl Family for SoftmaxCrossEntropy {
    fn name(&self) -> &'static str {
        "softmax_cross_entropy"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [x, t] = exactly(self.name(), inputs)?;
        has_labels(self.name(), x, t)?;
        let lse = Meta::new(DType::Float64, [x.shape[0], 2]);
        Ok(smallvec::smallvec![Meta::new(x.dtype, [1]), lse])
    }

    fn checked(&self) -> &'static [usize] {
        &[1]
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        Cost::elementwise(io, 16)
    }
}

impl Family for SoftmaxCrossEntropyGrad {
    fn name(&self) -> &'static str {
        "softmax_cross_entropy_grad"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [dloss, x, t, lse] = exactly(self.name(), inputs)?;
        has_labels(self.name(), x, t)?;
        check_meta(self.name(), "dloss", dloss, x.dtype, &[1].into())?;
        check_meta(self.name(), "lse", lse, DType::Float64, &[x.shape[0], 2].into())?;
        Ok(smallvec::smallvec![x.like(x.dtype)])
    }

    fn in_place(&self) -> &'static [(usize, usize)] {
        &[(1, 0)]
    }

    fn checked(&self) -> &'static [usize] {
        &[2]
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        Cost::elementwise(io, 16)
    }
}
