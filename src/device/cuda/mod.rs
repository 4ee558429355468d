//! GPUs, by way of CUDA's driver.
#![allow(unsafe_code)]

pub mod compiler;
pub mod driver;
#[cfg(test)]
pub mod emulated;
mod memory;

use std::sync::Arc;

pub use driver::{Code, Driver, Function, Launch};
use memory::Memory;

use super::Device;

/// The name of devices that are GPUs.
pub const NAME: &str = "cuda";

/// A GPU with a ledger of its own, whose memory and work go through `driver`.
pub fn device(ordinal: i32, driver: &'static dyn Driver) -> Arc<Device> {
    Device::new(ordinal, NAME, Box::new(Memory::new(driver)), 1)
}
