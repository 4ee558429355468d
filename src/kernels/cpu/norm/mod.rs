//! Batch normalisation, and what belongs to it.

pub mod batch_norm;
pub mod fold;
pub mod running_average;
