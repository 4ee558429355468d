//! Rows written at places that a tensor holds.

use serde::{Deserialize, Serialize};

use super::{Cost, Family, Meta, Metas, exactly};
use crate::dtype::DType;
use crate::error::{Error, Result};

/// (x, places, updates) -> y: x (n, ...), in which the rows at places are replaced by those of
/// updates (m, ...), the last of several (ONNX `ScatterND`); or, with `adds`, have them added in
/// their order, which 16-bit floats and bool have not. Places are int64 (m,), as
/// [`Places`](super::index::Places) makes them; one out of range is an [`Error::Index`], before
/// anything is written. y is row-major.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct ScatterRows {
    /// Whether updates are added.
    pub adds: bool,
}

catalog!(ScatterRows => "scatter_rows");

impl Family for ScatterRows {
    fn name(&self) -> &'static str {
        "scatter_rows"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [x, places, updates] = exactly(self.name(), inputs)?;
        let dtypes = [x.dtype, places.dtype, updates.dtype];
        let fits = x.dtype == updates.dtype && places.dtype == DType::Int64;
        let want = "one dtype, and places of int64";
        crate::ensure!(fits, Error::dtype(self.name(), dtypes, want));
        let want = "numbers of 32 or 64 bits, or integers of 8";
        crate::ensure!(!self.adds || can_add(x.dtype), Error::dtype(self.name(), dtypes, want));
        let is_rows = x.shape.rank() > 0 && places.shape.rank() == 1 && updates.shape.rank() > 0;
        let fits =
            is_rows && updates.shape[0] == places.shape[0] && updates.shape[1..] == x.shape[1..];
        let shapes = [&x.shape, &places.shape, &updates.shape];
        let want = "rows, places, and a row for each place";
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
        self.adds
    }
}

/// Whether elements are added in their own type.
fn can_add(dtype: DType) -> bool {
    let is_half = matches!(dtype, DType::Float16 | DType::BFloat16);
    dtype != DType::Bool && !is_half && !dtype.is_storage()
}
