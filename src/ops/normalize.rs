//! Batch normalisation in two steps, as graphs run it: the statistics of each channel, and one pass
//! that applies them, optionally adds another tensor and ends in a ReLU.
//!
//! Together they compute what [`BatchNorm`], addition and relu compute in turn, bit for bit, except
//! that float16 and bfloat16 results are rounded only once.

use serde::{Deserialize, Serialize};

use super::norm::{BatchNorm, BatchNormGrad, parameter};
use super::{Cost, Family, Meta, Metas, exactly};
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

/// Checks the shape and dtype of tensors with one element per channel of x.
fn check(op: &'static str, x: &Meta, parameters: &[&Meta]) -> Result<()> {
    let channels = Meta::new(parameter(x.dtype), [*x.shape.get(1).unwrap_or(&0)]);
    for given in parameters {
        let fits = given.shape == channels.shape && given.dtype == channels.dtype;
        let want = || format!("{} of {} beside x {}", channels.shape, channels.dtype, x.shape);
        crate::ensure!(fits, Error::shape(op, [&given.shape], want()));
    }
    Ok(())
}

impl Family for Normalize {
    fn name(&self) -> &'static str {
        "normalize"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let count = 4 + usize::from(self.adds);
        let (got, want) = (inputs.len(), count.to_string());
        crate::ensure!(got == count, Error::arity(self.name(), got, want));
        let x = inputs[0];
        crate::ensure!(x.dtype.is_float(), Error::dtype(self.name(), [x.dtype], "a float dtype"));
        let want = "x of shape (N, C, ...)";
        crate::ensure!(x.shape.rank() >= 2, Error::shape(self.name(), [&x.shape], want));
        check(self.name(), x, &inputs[1..4])?;
        if let Some(added) = inputs.get(4) {
            let is_alike = added.shape == x.shape && added.dtype == x.dtype;
            let want = || format!("a tensor of x's shape {} and dtype {}", x.shape, x.dtype);
            crate::ensure!(is_alike, Error::shape(self.name(), [&added.shape], want()));
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
        check(self.name(), x, &[factor, term])?;
        Ok(metas)
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        Cost::elementwise(io, 12)
    }
}
