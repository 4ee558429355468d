//! Loops and portable kernels of the CPU.

pub mod update;
pub mod walk;
pub mod wide;
