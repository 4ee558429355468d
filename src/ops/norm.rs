//! Batch normalisation (Ioffe and Szegedy 2015; ONNX BatchNormalization).
//!
//! Scale, bias, mean and variance are float32; float64 where x is.

use serde::{Deserialize, Serialize};

use super::{
    Cost, Effects, Family, Meta, Metas, Real, check_dtypes, check_float, check_meta, exactly,
};
use crate::dtype::DType;
use crate::error::{Error, Result};

/// `y = (x - mean) / sqrt(var + eps) * scale + bias`, channel by channel, with the mean and the
/// biased variance of x: inputs x (N, C, ...), scale (C,), bias (C,), outputs y in the memory
/// order of x, mean (C,) and var (C,). Each channel needs at least one element.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct BatchNorm {
    /// Added to the variance.
    pub eps: Real,
}

/// The gradient of [`BatchNorm`]: inputs dy, x, scale, mean, var, outputs dx in the memory order
/// of x, dscale (C,) and dbias (C,).
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct BatchNormGrad {
    /// The value added to the variance in the forward pass.
    pub eps: Real,
}

/// As [`BatchNorm`] with a given mean and variance: inputs x, scale, bias, mean, var, output y.
/// The batch may be empty.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct BatchNormInference {
    /// Added to the variance.
    pub eps: Real,
}

/// The gradient of [`BatchNormInference`], with mean and variance as constants: inputs and outputs
/// as in [`BatchNormGrad`].
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct BatchNormInferenceGrad {
    /// The value added to the variance in the forward pass.
    pub eps: Real,
}

/// `running = (1 - momentum) * running + momentum * factor * batch`, in place: inputs running
/// and batch of one shape and float type. SINGA's rule: the momentum is the weight of the new
/// value; the factor n / (n - 1) makes a biased variance an unbiased one.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct RunningAverage {
    /// Weight of the new value.
    pub momentum: Real,
    /// The factor that the new value is multiplied by.
    pub factor: Real,
}

catalog!(
    BatchNorm => "batch_norm", BatchNormGrad => "batch_norm_grad",
    BatchNormInference => "batch_norm_inference",
    BatchNormInferenceGrad => "batch_norm_inference_grad", RunningAverage => "running_average"
);

/// Checks x (N, C, ...), `parameters` (C,) and eps; returns the meta of a parameter.
fn check(op: &'static str, x: &Meta, parameters: &[&Meta], eps: Real) -> Result<Meta> {
    check_float(op, x)?;
    crate::ensure!(x.shape.rank() >= 2, Error::shape(op, [&x.shape], "x of shape (N, C, ...)"));
    let parameter = check_channels(op, x, parameters)?;
    check_eps(op, eps)?;
    Ok(parameter)
}

/// Checks tensors with an element for each channel of x; returns their meta.
pub(super) fn check_channels(op: &'static str, x: &Meta, parameters: &[&Meta]) -> Result<Meta> {
    let parameter = Meta::new(x.dtype.wide(), [x.shape[1]]);
    for given in parameters {
        check_meta(op, "an element for each channel", given, parameter.dtype, &parameter.shape)?;
    }
    Ok(parameter)
}

/// Checks what is added to a variance.
///
/// # Errors
/// [`Error::Value`] unless it is finite and not negative.
pub fn check_eps(op: &'static str, eps: Real) -> Result<()> {
    let (fits, got) = (eps.0 >= 0.0 && eps.0.is_finite(), || format!("eps {}", eps.0));
    crate::ensure!(fits, Error::value(op, got(), "a finite eps, not negative"));
    Ok(())
}

/// Checks that each channel has elements, without which it has no mean.
fn check_elements(op: &'static str, x: &Meta) -> Result<()> {
    let has_elements = x.shape.with(1, 1).numel() > 0;
    let got = || format!("x of shape {}", x.shape);
    crate::ensure!(has_elements, Error::value(op, got(), "at least one element a channel"));
    Ok(())
}

/// Infers the outputs of both gradients.
fn infer_gradient(op: &'static str, inputs: &[&Meta], eps: Real) -> Result<Metas> {
    let [dy, x, scale, mean, var] = exactly(op, inputs)?;
    let parameter = check(op, x, &[scale, mean, var], eps)?;
    check_meta(op, "dy", dy, x.dtype, &x.shape)?;
    Ok(smallvec::smallvec![x.like(x.dtype), parameter.clone(), parameter])
}

impl Family for BatchNorm {
    fn name(&self) -> &'static str {
        "batch_norm"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [x, scale, bias] = exactly(self.name(), inputs)?;
        let parameter = check(self.name(), x, &[scale, bias], self.eps)?;
        check_elements(self.name(), x)?;
        Ok(smallvec::smallvec![x.like(x.dtype), parameter.clone(), parameter])
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        Cost::elementwise(io, 8)
    }
}

impl Family for BatchNormGrad {
    fn name(&self) -> &'static str {
        "batch_norm_grad"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let metas = infer_gradient(self.name(), inputs, self.eps)?;
        check_elements(self.name(), inputs[1])?;
        Ok(metas)
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        Cost::elementwise(io, 10)
    }
}

impl Family for BatchNormInference {
    fn name(&self) -> &'static str {
        "batch_norm_inference"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [x, scale, bias, mean, var] = exactly(self.name(), inputs)?;
        check(self.name(), x, &[scale, bias, mean, var], self.eps)?;
        Ok(smallvec::smallvec![x.like(x.dtype)])
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        Cost::elementwise(io, 3)
    }
}

impl Family for BatchNormInferenceGrad {
    fn name(&self) -> &'static str {
        "batch_norm_inference_grad"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        infer_gradient(self.name(), inputs, self.eps)
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        Cost::elementwise(io, 6)
    }
}

impl Family for RunningAverage {
    fn name(&self) -> &'static str {
        "running_average"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [running, batch] = exactly(self.name(), inputs)?;
        let is_same = running.shape == batch.shape;
        let shapes = || [&running.shape, &batch.shape];
        crate::ensure!(is_same, Error::shape(self.name(), shapes(), "two equal shapes"));
        check_dtypes(self.name(), inputs, DType::is_float, "two equal float dtypes")?;
        Ok(smallvec::smallvec![running.clone()])
    }

    fn effects(&self) -> Effects {
        Effects::updates(&[(0, 0)])
    }
}
