//! Batch normalisation. Sums are accumulated in float64, channel by channel, in chunks that depend
//! on the sizes alone, so the number of threads does not change a bit of the result. Deviations are
//! taken from each channel's first element: the variance then loses at most as many float64
//! rounding errors as a channel has elements, whatever its mean.

mod formulas;
mod forward;
mod gradient;
mod passes;
mod setup;
#[cfg(test)]
mod tests;
mod tiles;

pub use forward::{forward, inference, normalize, statistics};
pub use gradient::{Through, gradient};
