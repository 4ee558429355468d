//! Root mean square normalisation (Zhang and Sennrich 2019; ONNX RMSNormalization), of matrices.

use serde::{Deserialize, Serialize};

use super::layer_norm::check;
use super::norm::check_eps;
use super::{Cost, Family, Meta, Metas, Real, check_meta, exactly};
use crate::error::Result;

/// (x, scale) -> (y, inverse): `y = x * inverse * scale` for x of shape (N, C), with
/// `inverse = 1 / sqrt(mean(x * x) + eps)` of each row. scale has shape (C,) and the dtype of x; y
/// has the memory order of x. `inverse` has shape (N,) and is float32; float64 where x is.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct RmsNorm {
    /// Added to the mean of the squares.
    pub eps: Real,
}

/// (dy, x, scale, inverse) -> (dx, dscale): the gradient of [`RmsNorm`]. dx has the memory order
/// of x.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct RmsNormGrad {}

catalog!(RmsNorm => "rms_norm", RmsNormGrad => "rms_norm_grad");

impl Family for RmsNorm {
    fn name(&self) -> &'static str {
        "rms_norm"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [x, scale] = exactly(self.name(), inputs)?;
        let inverse = check(self.name(), x, [Some(scale), None])?;
        check_eps(self.name(), self.eps)?;
        Ok(smallvec::smallvec![x.like(x.dtype), inverse])
    }

    fn in_place(&self) -> &'static [(usize, usize)] {
        &[(0, 0)]
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        Cost::elementwise(io, 4)
    }
}

impl Family for RmsNormGrad {
    fn name(&self) -> &'static str {
        "rms_norm_grad"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [dy, x, scale, inverse] = exactly(self.name(), inputs)?;
        let statistic = check(self.name(), x, [Some(scale), None])?;
        check_meta(self.name(), "dy", dy, x.dtype, &x.shape)?;
        check_meta(self.name(), "a statistic", inverse, statistic.dtype, &statistic.shape)?;
        Ok(smallvec::smallvec![x.like(x.dtype), Meta::new(x.dtype, [x.shape[1]])])
    }

    fn in_place(&self) -> &'static [(usize, usize)] {
        &[(0, 0), (1, 0)]
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        Cost::elementwise(io, 10)
    }
}
