//! GPUs as Python objects.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::device::{self, PyDevice};
use super::exit;
use crate::engine;
use crate::error::Error;
use crate::kernels::gpu::{self, Gpu};

/// How many GPUs the driver finds; 0 without one.
#[pyfunction]
fn gpu_count() -> usize {
    gpu::count()
}

/// The GPU of a number.
#[pyfunction(name = "gpu")]
fn numbered(py: Python<'_>, ordinal: usize) -> PyResult<Bound<'_, PyDevice>> {
    started(py, exit::detach(py, || Gpu::numbered(ordinal))?)
}

/// A GPU that is not there, for tests: its kernels run on the CPU.
#[cfg(feature = "emulate")]
#[pyfunction(name = "emulated_gpu")]
fn emulated(py: Python<'_>) -> PyResult<Bound<'_, PyDevice>> {
    started(py, exit::detach(py, Gpu::emulated)?)
}

/// A GPU as a device that runs operations.
fn started(py: Python<'_>, gpu: Gpu) -> PyResult<Bound<'_, PyDevice>> {
    engine::start(&gpu.device);
    device::object(py, gpu.device)
}

/// A GPU's `name`, compute `capability` (major, minor), number of multi`processors`, the `libraries`
/// that are used beside kernels of our own, and its `free` and `total` memory in bytes.
#[pyfunction]
fn gpu_properties<'py>(py: Python<'py>, device: &PyDevice) -> PyResult<Bound<'py, PyDict>> {
    let want = "a GPU";
    let found = Gpu::of(&device.0);
    let gpu = found.ok_or_else(|| Error::value("gpu_properties", device.0.name(), want))?;
    let (properties, (free, total)) = (gpu.properties(), gpu.memory());
    let found = PyDict::new(py);
    found.set_item("name", properties.name)?;
    found.set_item("capability", properties.capability)?;
    found.set_item("processors", properties.processors)?;
    found.set_item("libraries", properties.libraries)?;
    found.set_item("free", free)?;
    found.set_item("total", total)?;
    Ok(found)
}

/// Waits until all work on a device is done; that of the CPU is done at once.
#[pyfunction]
fn wait(py: Python<'_>, device: &PyDevice) -> PyResult<()> {
    let gpu = Gpu::of(&device.0);
    Ok(gpu.map_or(Ok(()), |gpu| exit::detach(py, || gpu.wait()))?)
}

/// Offers one of CUDA's shared libraries at `path`, unless the environment names another. Has an
/// effect only before the first GPU is used.
#[pyfunction]
fn offer_cuda(path: std::path::PathBuf) {
    gpu::offer_library(path);
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(gpu_count, module)?)?;
    module.add_function(wrap_pyfunction!(numbered, module)?)?;
    module.add_function(wrap_pyfunction!(gpu_properties, module)?)?;
    module.add_function(wrap_pyfunction!(wait, module)?)?;
    module.add_function(wrap_pyfunction!(offer_cuda, module)?)?;
    #[cfg(feature = "emulate")]
    module.add_function(wrap_pyfunction!(emulated, module)?)?;
    Ok(())
}
