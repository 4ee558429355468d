//! GPUs, by way of CUDA's driver.
#![allow(unsafe_code)]

#[cfg(any(test, feature = "emulate"))]
mod assembler;
#[cfg(feature = "cuda")]
mod calls;
#[cfg(feature = "cuda")]
mod capture;
pub mod compiler;
pub mod convolution;
#[cfg(feature = "cuda")]
mod convolutions;
pub mod driver;
#[cfg(any(test, feature = "emulate"))]
pub mod emulated;
#[cfg(feature = "cuda")]
mod files;
#[cfg(feature = "cuda")]
mod installed;
pub mod library;
mod memory;
pub mod product;
#[cfg(feature = "cuda")]
mod products;

#[cfg(any(test, feature = "cuda"))]
mod trial;

use std::sync::Arc;

pub use driver::{Call, Captured, Code, Demand, Driver, Function, Launch, Properties};
use memory::Memory;

use super::Device;
use crate::error::{Error, Result};

/// The name of devices that are GPUs.
pub const NAME: &str = "cuda";

/// What multiplies matrices.
pub const CUBLASLT: &str = "cuBLASLt";
/// What convolves.
pub const CUDNN: &str = "cuDNN";

/// A GPU with a ledger of its own, whose memory and work go through `driver`.
pub fn device(ordinal: i32, driver: &'static dyn Driver) -> Arc<Device> {
    Device::new(ordinal, NAME, Box::new(Memory::new(driver)), 1)
}

/// How many GPUs there are.
#[cfg(feature = "cuda")]
pub fn count() -> usize {
    installed::count().unwrap_or(0)
}

/// How many GPUs there are: none, since this build has no use for them.
#[cfg(not(feature = "cuda"))]
pub fn count() -> usize {
    0
}

/// The driver of a GPU, which is never given back.
///
/// # Errors
/// [`Error::Device`], which says what is missing: a driver, such a GPU, a compiler.
#[cfg(feature = "cuda")]
pub fn driver(ordinal: usize) -> Result<&'static dyn Driver> {
    Ok(Box::leak(Box::new(installed::Installed::new(ordinal)?)))
}

/// The driver of a GPU.
///
/// # Errors
/// [`Error::Device`]: this build has no use for GPUs.
#[cfg(not(feature = "cuda"))]
pub fn driver(_ordinal: usize) -> Result<&'static dyn Driver> {
    Err(refusal("this build of singa_rs has no CUDA"))
}

/// An error of the GPU.
fn refusal(message: impl Into<String>) -> Error {
    Error::device(NAME, message)
}
