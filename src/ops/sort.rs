//! Sorting along an axis.

use serde::{Deserialize, Serialize};

use super::{Cost, Family, Meta, Metas, exactly};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::Shape;

/// x -> (values, indices): the elements along an axis in ascending or descending order, and where
/// each stood, int64; all of them, or the first `count` (ONNX `TopK`).
///
/// Equal elements keep their order, and -0 equals 0. NaN is greater than all numbers: the last one
/// in ascending order, as in NumPy, and the first in descending order, as in PyTorch. Both outputs
/// are row-major.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Sort {
    /// The axis.
    pub axis: i64,
    /// Whether the greatest come first.
    pub descending: bool,
    /// How many elements are kept; all of them if None.
    pub count: Option<usize>,
}

catalog!(Sort => "sort" "topk");

impl Family for Sort {
    fn name(&self) -> &'static str {
        if self.count.is_some() { "topk" } else { "sort" }
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [x] = exactly(self.name(), inputs)?;
        let axis = x.shape.axis(self.name(), self.axis)?;
        let extent = x.shape[axis];
        let count = self.count.unwrap_or(extent);
        let got = || format!("{count} elements of an axis of {extent}");
        crate::ensure!(count <= extent, Error::value(self.name(), got(), "no more than there are"));
        let kept = |d: usize| if d == axis { count } else { x.shape[d] };
        let shape: Shape = (0..x.shape.rank()).map(kept).collect();
        Ok(smallvec::smallvec![Meta::new(x.dtype, shape.clone()), Meta::new(DType::Int64, shape)])
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        Cost::elementwise(io, 64)
    }
}
