//! Kernels from oneDNN.

pub mod conv;
mod layout;
pub mod matmul;
mod pieces;
mod reorder;
mod steps;
mod sums;

pub use steps::Steps;
