//! Kernels from oneDNN.

pub mod conv;
mod layout;
pub mod matmul;
mod steps;

pub use steps::Steps;
