//! The GPUs that this process uses, each with its target.

use std::sync::{Arc, Mutex};

use super::Cuda;
use crate::device::cuda::{self, Driver, Properties};
use crate::device::{Device, Stream};
use crate::error::{Result, locked};
use crate::kernels;

/// A GPU, which is never given back.
#[derive(Clone)]
pub struct Gpu {
    /// Where its tensors are.
    pub device: Arc<Device>,
    driver: &'static dyn Driver,
}

/// How many GPUs the driver finds; 0 without one.
pub fn count() -> usize {
    cuda::count()
}

/// Offers a path to one of CUDA's libraries. Has an effect only before the first GPU is started.
pub fn offer_library(path: std::path::PathBuf) {
    cuda::library::offer(path);
}

static GPUS: Mutex<Vec<Gpu>> = Mutex::new(Vec::new());

impl Gpu {
    /// The GPU of a number, which is started once.
    ///
    /// # Errors
    /// [`crate::Error::Device`], which says what is missing.
    pub fn numbered(ordinal: usize) -> Result<Gpu> {
        Gpu::known(ordinal as i32, || cuda::driver(ordinal))
    }

    /// The GPU of a device; None for one that is no GPU.
    pub fn of(device: &Device) -> Option<Gpu> {
        let gpus = locked(&GPUS);
        gpus.iter().find(|gpu| std::ptr::eq(&*gpu.device, device)).cloned()
    }

    /// The emulated GPU, which runs kernels on the host.
    ///
    /// # Errors
    /// As [`Gpu::numbered`].
    #[cfg(any(test, feature = "emulate"))]
    pub fn emulated() -> Result<Gpu> {
        use crate::device::cuda::emulated;
        Gpu::known(emulated::ORDINAL, || Ok(emulated::driver()))
    }

    fn known(id: i32, driver: impl FnOnce() -> Result<&'static dyn Driver>) -> Result<Gpu> {
        let mut gpus = locked(&GPUS);
        if let Some(gpu) = gpus.iter().find(|gpu| gpu.device.id() == id) {
            return Ok(gpu.clone());
        }
        let driver = driver()?;
        let gpu = Gpu { device: cuda::device(id, driver), driver };
        kernels::register(&gpu.device, Box::leak(Box::new(Cuda::new(driver))));
        gpus.push(gpu.clone());
        Ok(gpu)
    }

    /// What it is.
    pub fn properties(&self) -> Properties {
        self.driver.properties()
    }

    /// Its free and its total memory, in bytes.
    pub fn memory(&self) -> (usize, usize) {
        self.driver.memory()
    }

    /// The stream on which it works.
    pub fn stream(&self) -> Stream {
        self.driver.stream()
    }

    /// Waits until all its work is done.
    ///
    /// # Errors
    /// [`crate::Error::Device`] where a kernel failed.
    pub fn wait(&self) -> Result<()> {
        self.driver.wait(self.driver.stream())
    }
}
