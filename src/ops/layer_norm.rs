//! Layer normalisation (Ba, Kiros and Hinton 2016; ONNX LayerNormalization), of matrices.

use serde::{Deserialize, Serialize};

use super::norm::check_eps;
use super::{Cost, Family, Meta, Metas, Real, check_float, check_meta, exactly, two_or_three};
use crate::error::{Error, Result};

/// (x, scale, bias) -> (y, mean, inverse): `y = (x - mean) * inverse * scale + bias` for x of shape
/// (N, C), with the mean and `inverse = 1 / sqrt(var + eps)` of each row, by its biased variance.
/// scale and bias, which may be left out, have shape (C,) and the dtype of x; y has the memory order
/// of x. The statistics have shape (N,) and are float32; float64 where x is.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct LayerNorm {
    /// Added to the variance.
    pub eps: Real,
}

/// (dy, x, scale, mean, inverse) -> (dx, dscale, dbias): the gradient of [`LayerNorm`]. dx has the
/// memory order of x.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct LayerNormGrad {}

catalog!(LayerNorm => "layer_norm", LayerNormGrad => "layer_norm_grad");

impl Family for LayerNorm {
    fn name(&self) -> &'static str {
        "layer_norm"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let (x, scale, bias) = two_or_three(self.name(), inputs)?;
        let statistics = check(self.name(), x, [Some(scale), bias])?;
        check_eps(self.name(), self.eps)?;
        Ok(smallvec::smallvec![x.like(x.dtype), statistics.clone(), statistics])
    }

    fn in_place(&self) -> &'static [(usize, usize)] {
        &[(0, 0)]
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        Cost::elementwise(io, 8)
    }
}

impl Family for LayerNormGrad {
    fn name(&self) -> &'static str {
        "layer_norm_grad"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [dy, x, scale, mean, inverse] = exactly(self.name(), inputs)?;
        let statistics = check(self.name(), x, [Some(scale), None])?;
        check_meta(self.name(), "dy", dy, x.dtype, &x.shape)?;
        for given in [mean, inverse] {
            check_meta(self.name(), "a statistic", given, statistics.dtype, &statistics.shape)?;
        }
        let vector = Meta::new(x.dtype, [x.shape[1]]);
        Ok(smallvec::smallvec![x.like(x.dtype), vector.clone(), vector])
    }

    fn in_place(&self) -> &'static [(usize, usize)] {
        &[(0, 0), (1, 0)]
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        Cost::elementwise(io, 14)
    }
}

/// Checks x, scale and bias; returns the meta of a statistic.
pub(super) fn check(op: &'static str, x: &Meta, vectors: [Option<&Meta>; 2]) -> Result<Meta> {
    check_float(op, x)?;
    crate::ensure!(x.shape.rank() == 2, Error::shape(op, [&x.shape], "x of shape (N, C)"));
    let vector = [x.shape[1]].into();
    for given in vectors.into_iter().flatten() {
        check_meta(op, "a scale or bias", given, x.dtype, &vector)?;
    }
    Ok(Meta::new(x.dtype.wide(), [x.shape[0]]))
}
