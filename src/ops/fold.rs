//! Batch normalisation by fixed statistics, prepared for many images: the factor of each channel,
//! or weights and a bias that let the preceding convolution do the normalisation.

use serde::{Deserialize, Serialize};

#[cfg(doc)]
use super::norm::BatchNormInference;
use super::{Family, Meta, Metas, Real, check_dtypes, exactly};
use crate::dtype::DType;
use crate::error::{Error, Result};

/// (scale, var) -> `scale / sqrt(var + eps)`, as [`BatchNormInference`] computes it; all (C,).
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct BatchNormFactor {
    /// Added to the variance.
    pub eps: Real,
}

/// (w, scale, bias, mean, var, optionally b) -> (weights, bias) of the convolution or product
/// equivalent to one with weights w and bias b followed by [`BatchNormInference`]: with
/// `factor = scale / sqrt(var + eps)`, `w * factor` and `bias + (b - mean) * factor`, each computed
/// in float64 and rounded once. w is row-major, float32 or float64, with its C channels along
/// `axis`; the others are (C,) of the same type.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct FoldBatchNorm {
    /// Added to the variance.
    pub eps: Real,
    /// The channel axis of w.
    pub axis: usize,
}

catalog!(BatchNormFactor => "batch_norm_factor", FoldBatchNorm => "fold_batch_norm");

impl Family for BatchNormFactor {
    fn name(&self) -> &'static str {
        "batch_norm_factor"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [scale, var] = exactly(self.name(), inputs)?;
        let fits = scale.shape.rank() == 1 && scale.shape == var.shape;
        let want = "two tensors of shape (C,)";
        crate::ensure!(fits, Error::shape(self.name(), [&scale.shape, &var.shape], want));
        check_types(self.name(), inputs)?;
        Ok(smallvec::smallvec![Meta::new(scale.dtype, scale.shape.clone())])
    }
}

impl Family for FoldBatchNorm {
    fn name(&self) -> &'static str {
        "fold_batch_norm"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let want = || Error::arity(self.name(), inputs.len(), "5 or 6");
        crate::ensure!(matches!(inputs.len(), 5 | 6), want());
        let (w, channels) = (inputs[0], &inputs[1..]);
        let count = w.shape.get(self.axis).copied().unwrap_or(0);
        let fits = self.axis < w.shape.rank()
            && w.is_contiguous()
            && channels.iter().all(|given| given.shape[..] == [count]);
        let want = || {
            format!(
                "row-major weights, and tensors with one element for each index along axis {}",
                self.axis
            )
        };
        crate::ensure!(fits, Error::shape(self.name(), inputs.iter().map(|m| &m.shape), want()));
        check_types(self.name(), inputs)?;
        let bias = Meta::new(w.dtype, [count]);
        Ok(smallvec::smallvec![Meta::new(w.dtype, w.shape.clone()), bias])
    }
}

fn check_types(op: &'static str, inputs: &[&Meta]) -> Result<()> {
    check_dtypes(op, inputs, DType::is_wide_float, "float32 or float64 for all")
}
