//! Dropout and its gradient.

use serde::{Deserialize, Serialize};

use super::{check_state, is_zero};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::{Cost, Effects, Family, Kind, Meta, Metas, Real, check_float, exactly};

/// (x[, state]) -> (y, mask): each element is kept with probability 1 - ratio and then divided by
/// it, or else zero (Srivastava et al. 2014, in the inverted form of ONNX `Dropout`). `mask` is a
/// bool tensor that is true for kept elements. Outputs keep the memory order of `x`.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Dropout {
    /// The probability that an element is dropped, from 0 to 1.
    pub ratio: Real,
    /// The first 128-bit block used, counted from the generator's position.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub offset: u64,
}

catalog!(Dropout => "dropout", DropoutGrad => "dropout_grad");

impl Family for Dropout {
    fn name(&self) -> &'static str {
        "dropout"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [x, state] = exactly(self.name(), inputs)?;
        check_state(self.name(), state)?;
        check(self.name(), x, self.ratio)?;
        Ok(smallvec::smallvec![x.like(x.dtype), x.like(DType::Bool)])
    }

    fn effects(&self) -> Effects {
        Effects::draws_from(1)
    }

    fn in_place(&self) -> &'static [(usize, usize)] {
        &[(0, 0)]
    }

    fn draws(&self, inputs: &[&Meta]) -> u64 {
        (inputs[0].numel() as u64).div_ceil(4)
    }

    fn drawing_from(&self, offset: u64) -> Option<Kind> {
        Some(Dropout { offset, ..self.clone() }.into())
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        Cost::elementwise(io, 24)
    }
}

/// (dy, mask) -> dx: the gradient of [`Dropout`]; keeps the memory order of `dy`.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct DropoutGrad {
    /// The ratio of the forward operation.
    pub ratio: Real,
}

impl Family for DropoutGrad {
    fn name(&self) -> &'static str {
        "dropout_grad"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [dy, mask] = exactly(self.name(), inputs)?;
        check(self.name(), dy, self.ratio)?;
        let want = "a bool mask";
        crate::ensure!(
            mask.dtype == DType::Bool,
            Error::dtype(self.name(), [dy.dtype, mask.dtype], want)
        );
        let want = "a mask of the gradient's shape";
        crate::ensure!(
            mask.shape == dy.shape,
            Error::shape(self.name(), [&dy.shape, &mask.shape], want)
        );
        Ok(smallvec::smallvec![dy.like(dy.dtype)])
    }

    fn in_place(&self) -> &'static [(usize, usize)] {
        &[(0, 0)]
    }
}

fn check(op: &'static str, x: &Meta, Real(ratio): Real) -> Result<()> {
    check_float(op, x)?;
    let want = "a ratio from 0 to 1";
    crate::ensure!((0.0..=1.0).contains(&ratio), Error::value(op, format!("ratio {ratio}"), want));
    Ok(())
}
