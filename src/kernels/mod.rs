//! How operations run on a processor.

pub mod cpu;
pub mod kernel;
pub mod prepared;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub use kernel::{Io, Kernel, Packing, Width, checked, kernel};
pub use prepared::Prepared;
