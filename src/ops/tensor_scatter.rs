//! Writing slices at positions that a tensor holds, as into a cache of keys and values.

use serde::{Deserialize, Serialize};

use super::{Cost, Effects, Family, Meta, Metas, exactly};
use crate::dtype::DType;
use crate::error::{Error, Result};

/// (past, update, start): writes `past[n, ..., start[n] + i, ...] = update[n, ..., i, ...]` along an
/// axis, in place (ONNX `TensorScatter`, linear). past (N, ..., C, ...) and update (N, ..., L, ...)
/// have one dtype, L is at most C, and start is int64 of shape (N,), or (1,) for all n. Positions
/// that do not fit are an [`Error::Value`], before anything is written.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct TensorScatter {
    /// The axis of the positions, not the first one.
    pub axis: i64,
}

catalog!(TensorScatter => "tensor_scatter");

impl Family for TensorScatter {
    fn name(&self) -> &'static str {
        "tensor_scatter"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [past, update, start] = exactly(self.name(), inputs)?;
        let same = past.dtype == update.dtype && start.dtype == DType::Int64;
        let got = [past.dtype, update.dtype, start.dtype];
        let want = "one dtype, and int64 positions";
        crate::ensure!(same, Error::dtype(self.name(), got, want));
        let axis = past.shape.axis(self.name(), self.axis)?;
        let shapes = || [&past.shape, &update.shape, &start.shape];
        let bad = |want: &str| Error::shape(self.name(), shapes(), want);
        crate::ensure!(axis > 0, bad("an axis after the first"));
        let fits = |d: usize| match d == axis {
            true => update.shape[d] <= past.shape[d],
            false => update.shape[d] == past.shape[d],
        };
        let is_like = past.shape.rank() == update.shape.rank();
        let want = "an update of the same shape, but for at most as many along the axis";
        crate::ensure!(is_like && (0..past.shape.rank()).all(fits), bad(want));
        let one = start.shape.rank() == 1 && [1, past.shape[0]].contains(&start.shape[0]);
        crate::ensure!(one, bad("a position for all, or one for each"));
        Ok(smallvec::smallvec![past.clone()])
    }

    fn effects(&self) -> Effects {
        Effects::updates(&[(0, 0)])
    }

    fn checked(&self) -> &'static [usize] {
        &[2]
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        Cost::elementwise(&io[1..2], 2)
    }
}
