//! Batch normalisation. Sums are accumulated in float64, channel by channel, in chunks that depend
//! on the sizes alone, so the number of threads does not change a bit of the result. Deviations are
//! taken from each channel's first element: the variance then loses at most as many float64
//! rounding errors as a channel has elements, whatever its mean.

mod formulas;
mod forward;
mod gradient;
mod passes;
mod plan;
#[cfg(test)]
mod tests;
mod tiles;

use std::sync::Arc;

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernels::Kernel;
use crate::ops::Meta;
pub use forward::{forward, inference, normalize, statistics};
pub use gradient::{Through, gradient};

fn not_float(io: &[&Meta]) -> Result<Arc<dyn Kernel>> {
    Err(Error::dtype("batch_norm", [io[0].dtype], "a float dtype"))
}

/// The type of tensors with one element per channel, for x of a float type.
pub fn parameter(x: DType) -> DType {
    if x == DType::Float64 { x } else { DType::Float32 }
}
