//! Elements written at places along an axis that a tensor holds.

use serde::{Deserialize, Serialize};

use super::{Cost, Family, Meta, Metas, exactly};
use crate::dtype::DType;
use crate::error::{Error, Result};

/// How an update meets the element at its place, by ONNX's names.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Join {
    /// It takes its place.
    None,
    /// Both are added; integers wrap.
    Add,
    /// Both are multiplied; integers wrap.
    Mul,
    /// The larger one stays, or NaN if either is.
    Max,
    /// The smaller one stays, or NaN if either is.
    Min,
}

/// (x, places, updates) -> y: x, in which `y[a.., places[a.., i, b..], b..]` is joined with
/// `updates[a.., i, b..]`, in the order of the axis (ONNX `ScatterElements`). Places are int64, as
/// [`Places`](super::index::Places) makes them, and of the shape of the updates, which along other
/// axes than this one have at most the extents of x; one out of range is an [`Error::Index`], before
/// anything is written. Bools and 16-bit floats are only replaced. y is row-major.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Scatter {
    /// The axis that the places are in.
    pub axis: i64,
    /// How updates meet what stands there.
    pub join: Join,
}

catalog!(Scatter => "scatter");

impl Family for Scatter {
    fn name(&self) -> &'static str {
        "scatter"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [x, places, updates] = exactly(self.name(), inputs)?;
        let dtypes = [x.dtype, places.dtype, updates.dtype];
        let fits = x.dtype == updates.dtype && places.dtype == DType::Int64;
        let want = "one dtype, and places of int64";
        crate::ensure!(fits, Error::dtype(self.name(), dtypes, want));
        let want = "numbers of 32 or 64 bits, or integers of 8";
        let fits = self.join == Join::None || can_join(x.dtype);
        crate::ensure!(fits, Error::dtype(self.name(), dtypes, want));
        let axis = x.shape.axis(self.name(), self.axis)?;
        let within = |d: usize| d == axis || updates.shape[d] <= x.shape[d];
        let is_like = updates.shape.rank() == x.shape.rank() && updates.shape == places.shape;
        let shapes = [&x.shape, &places.shape, &updates.shape];
        let want = "a place for each update, and no more than x has along other axes";
        let fits = is_like && (0..x.shape.rank()).all(within);
        crate::ensure!(fits, Error::shape(self.name(), shapes, want));
        Ok(smallvec::smallvec![Meta::new(x.dtype, x.shape.clone())])
    }

    fn in_place(&self) -> &'static [(usize, usize)] {
        &[(0, 0)]
    }

    fn may_fail(&self) -> bool {
        true
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        Cost::elementwise(&io[2..], 1)
    }

    fn computes(&self) -> bool {
        self.join != Join::None
    }
}

/// Whether elements are joined in their own type.
fn can_join(dtype: DType) -> bool {
    let is_half = matches!(dtype, DType::Float16 | DType::BFloat16);
    dtype != DType::Bool && !is_half && !dtype.is_storage()
}
