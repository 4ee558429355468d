//! Batch normalisation in two steps, as graphs run it: the statistics of each channel, and one pass
//! that applies them, optionally adds another tensor and ends in a ReLU.
//!
//! Together they compute what [`BatchNorm`], addition and relu compute in turn, bit for bit, except
//! that float16 and bfloat16 results are rounded only once.

use serde::{Deserialize, Serialize};

use super::norm::{BatchNorm, BatchNormGrad, check_channels};
use super::{Cost, Family, Meta, Metas, check_float, check_meta, exactly};
use crate::error::{Error, Result};

/// The statistics of each channel of x, and the factor and term with which [`Normalize`] applies
/// them: inputs x (N, C, ...), scale (C,), bias (C,), outputs mean, var, factor and term (C,).
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct BatchNormStatistics {
    /// The batch normalisation.
    #[serde(flatten)]
    pub norm: BatchNorm,
}

/// `y = (x - mean) * factor + term`, channel by channel: inputs x (N, C, ...), mean, factor and
/// term (C,), and a tensor like x if one is added; output y in the memory order of x.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Normalize {
    /// Whether another tensor is added.
    pub adds: bool,
    /// Whether the result is then max(., 0).
    pub relu: bool,
}

/// The gradient of a batch normalisation followed by a ReLU: inputs dy, x, scale, mean, var,
/// factor, term, outputs dx in the memory order of x, dscale (C,) and dbias (C,). Whether the ReLU
/// passed an element is recomputed from x.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct BatchNormReluGrad {
    /// The gradient of the normalisation before the ReLU.
    #[serde(flatten)]
    pub norm: BatchNormGrad,
}

catalog!(
    BatchNormStatistics => "batch_norm_statistics", Normalize => "normalize",
    BatchNormReluGrad => "batch_norm_relu_grad"
);

impl Family for BatchNormStatistics {
    fn name(&self) -> &'static str {
        "batch_norm_statistics"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let parameter = self.norm.infer(inputs)?[1].clone();
        Ok(smallvec::smallvec![parameter; 4])
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        Cost::elementwise(io, 4)
    }
}

impl Family for Normalize {
    fn name(&self) -> &'static str {
        "normalize"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let count = 4 + usize::from(self.adds);
        let got = inputs.len();
        crate::ensure!(got == count, Error::arity(self.name(), got, count));
        let x = inputs[0];
        check_float(self.name(), x)?;
        let want = "x of shape (N, C, ...)";
        crate::ensure!(x.shape.rank() >= 2, Error::shape(self.name(), [&x.shape], want));
        check_channels(self.name(), x, &inputs[1..4])?;
        if let Some(added) = inputs.get(4) {
            check_meta(self.name(), "what is added", added, x.dtype, &x.shape)?;
        }
        Ok(smallvec::smallvec![x.like(x.dtype)])
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        Cost::elementwise(io, 4)
    }
}

impl Family for BatchNormReluGrad {
    fn name(&self) -> &'static str {
        "batch_norm_relu_grad"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [dy, x, scale, mean, var, factor, term] = exactly(self.name(), inputs)?;
        let metas = self.norm.infer(&[dy, x, scale, mean, var])?;
        check_channels(self.name(), x, &[factor, term])?;
        Ok(metas)
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        Cost::elementwise(io, 12)
    }
}
