//! Devices as Python objects.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

use super::args::natural;
use super::dtype;
use super::exit;
use super::tensor::{self, Handle};
use crate::block::note_change;
use crate::device::{Account, Device};
use crate::engine::{self, Stream};
use crate::error::Error;
use crate::kernels;

/// A place where tensors live and operations run.
#[pyclass(name = "Device", module = "singa_rs._core", frozen, subclass)]
pub(super) struct PyDevice(pub Arc<Device>);

#[pymethods]
impl PyDevice {
    /// -1 for the CPU, the device number for CUDA.
    fn id(&self) -> i32 {
        self.0.id()
    }

    /// `cpu` or `cuda`.
    #[getter]
    fn name(&self) -> &'static str {
        self.0.name()
    }

    /// The ledger in bytes: one entry per account, and `allocated` (all but the pool and the
    /// kernels), `peak` (the highest `allocated`), `reserved` (all).
    fn memory<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let ledger = self.0.ledger();
        let report = accounts(py, &Account::ALL.map(|a| (a, ledger.balance(a))))?;
        report.set_item("allocated", ledger.in_use())?;
        report.set_item("peak", ledger.peak())?;
        report.set_item("reserved", ledger.reserved())?;
        Ok(report)
    }

    /// Bytes that can still be allocated from the machine, measured at the time of the call.
    fn available(&self) -> usize {
        self.0.pool().backend().available(usize::MAX)
    }

    /// Starts a new measurement of the peak.
    fn reset_peak(&self) {
        self.0.ledger().reset_peak();
    }

    /// Returns cached memory to the machine: freed memory and, unless a graph is running, the
    /// arenas of graphs, which their next run allocates again. Returns the number of bytes
    /// released.
    fn trim(&self, py: Python<'_>) -> PyResult<usize> {
        let engine = engine::of(&self.0)?;
        Ok(exit::detach(py, || engine.trim()))
    }

    /// Whether products of a dtype are computed in it, rather than in a wider one.
    fn computes_in(&self, dtype: &Bound<'_, PyAny>) -> PyResult<bool> {
        let want = "a device that runs operations";
        let refused = || Error::value("computes_in", self.0.name(), want);
        let target = kernels::target(&self.0).ok_or_else(refused)?;
        Ok(target.computes_in(dtype::parse(dtype)?)?)
    }

    /// How many threads a kernel may use.
    #[getter]
    fn num_threads(&self) -> usize {
        self.0.threads()
    }

    /// Sets how many threads a kernel may use (1 to 1024). Steps are recorded again, and operations
    /// prepared again, for that number; no bit of a result depends on it.
    fn set_num_threads(&self, threads: &Bound<'_, PyAny>) -> PyResult<()> {
        let (py, engine) = (threads.py(), engine::of(&self.0)?);
        let threads = natural("set_num_threads", threads)? as usize;
        let is_new = exit::detach(py, || engine.set_threads(threads))?;
        if is_new {
            note_change();
        }
        Ok(())
    }

    /// Reseeds the device's random numbers, with a seed from 0 to 2^63 - 1. While a step is
    /// recorded, this is part of the step and happens in each run.
    fn set_seed(&self, seed: &Bound<'_, PyAny>) -> PyResult<()> {
        let (py, engine) = (seed.py(), engine::of(&self.0)?);
        let seed = natural("set_seed", seed)?;
        Ok(exit::detach(py, || engine.seed(&mut engine.turn(), seed))?)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<PyDevice>().is_ok_and(|d| Arc::ptr_eq(&d.get().0, &self.0))
    }

    fn __hash__(&self) -> isize {
        self.0.id() as isize + 2
    }

    fn __repr__(&self) -> String {
        format!("Device({}, {})", self.0.name(), self.0.id())
    }
}

/// Bytes keyed by account name.
pub(super) fn accounts<'py>(
    py: Python<'py>,
    bytes: &[(Account, usize)],
) -> PyResult<Bound<'py, PyDict>> {
    let report = PyDict::new(py);
    for (account, bytes) in bytes {
        report.set_item(account.name(), bytes)?;
    }
    Ok(report)
}

/// The CPU: always there, the default.
#[pyfunction(name = "cpu")]
fn cpu_device(py: Python<'_>) -> PyResult<Bound<'_, PyDevice>> {
    object(py, kernels::host().clone())
}

/// A device as an object; the CPU is always the same one.
pub(super) fn object(py: Python<'_>, device: Arc<Device>) -> PyResult<Bound<'_, PyDevice>> {
    static CPU: PyOnceLock<Py<PyDevice>> = PyOnceLock::new();
    if !Arc::ptr_eq(&device, kernels::host()) {
        return Bound::new(py, PyDevice(device));
    }
    let made = CPU.get_or_try_init(py, || Py::new(py, PyDevice(device)))?;
    Ok(made.bind(py).clone())
}

/// The state (int64 key and position) of one of a device's generators: `step` or `init`.
#[pyfunction]
fn random_state<'py>(
    py: Python<'py>,
    device: &PyDevice,
    stream: &str,
) -> PyResult<Bound<'py, Handle>> {
    let stream = match stream {
        "step" => Stream::Step,
        "init" => Stream::Init,
        _ => return Err(Error::value("random_state", stream, "step or init").into()),
    };
    let engine = engine::of(&device.0)?;
    let state = exit::detach(py, || engine.rng().state(&engine.turn(), stream).cloned())?;
    tensor::make(py, state)
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::python::add_class::<PyDevice>(module)?;
    module.add_function(wrap_pyfunction!(cpu_device, module)?)?;
    module.add_function(wrap_pyfunction!(random_state, module)?)
}
