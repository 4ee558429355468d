//! How operations run on a processor.

pub mod cpu;
pub mod kernel;
pub mod prepared;

pub use kernel::{Io, Kernel, Packing, Width, checked, kernel};
pub use prepared::Prepared;
