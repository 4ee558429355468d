//! Python's interface to groups of processes.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::op::{run, run_into};
use super::tensor::Handle;
use super::{attrs, exit, handler};
#[cfg(target_os = "linux")]
use crate::comm::mpi::{self, Handles};
use crate::comm::{self, Exchange, Group};
use crate::dtype::DType;
use crate::engine::Inputs;
use crate::engine::record::{self, Mode};
use crate::error::{Error, locked};
use crate::ops::exchange::{ExchangeFinish, ExchangeStart};
use crate::ops::{Meta, View};

/// A group of processes, of which this one is a member.
#[pyclass(module = "singa_rs._core", frozen)]
pub(super) struct Communicator {
    group: Arc<Group>,
    slots: Arc<Slots>,
}

impl Communicator {
    fn of(group: Arc<Group>) -> Self {
        Communicator { group, slots: Arc::default() }
    }
}

/// Which slots are taken: of calls, and of recordings. A step may be replayed between the start and
/// the end of an exchange outside of it.
#[derive(Default)]
struct Slots(Mutex<[Vec<bool>; 2]>);

/// The first slot of calls, and that of recordings.
const FIRST: [u32; 2] = [0, 1 << 16];

impl Slots {
    /// The lowest free slot: a step that is recorded again uses the same ones.
    fn take(self: &Arc<Self>, group: &Arc<Group>) -> Slot {
        let (mut taken, is_recorded) = (self.lock(), record::mode() != Mode::Eager);
        let taken = &mut taken[usize::from(is_recorded)];
        let index = taken.iter().position(|slot| !slot).unwrap_or(taken.len());
        taken.resize(taken.len().max(index + 1), false);
        taken[index] = true;
        Slot { of: self.clone(), group: group.clone(), is_recorded, index }
    }

    fn lock(&self) -> MutexGuard<'_, [Vec<bool>; 2]> {
        locked(&self.0)
    }
}

/// A slot that is taken until this is dropped.
struct Slot {
    of: Arc<Slots>,
    group: Arc<Group>,
    is_recorded: bool,
    index: usize,
}

impl Slot {
    /// The number under which the group knows it.
    fn number(&self) -> u32 {
        FIRST[usize::from(self.is_recorded)] + self.index as u32
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if !self.is_recorded {
            self.group.forget(self.number());
        }
        self.of.lock()[usize::from(self.is_recorded)][self.index] = false;
    }
}

/// An exchange that was started. One that nobody waits for is forgotten with this object.
#[pyclass(module = "singa_rs._core", frozen)]
pub(super) struct Started {
    group: Arc<Group>,
    exchange: Exchange,
    dtype: DType,
    /// The bytes that this rank receives.
    bytes: usize,
    /// None once it was waited for.
    slot: Mutex<Option<Slot>>,
}

impl Started {
    /// The slot. It stays where it cannot be waited for from here.
    fn take(&self) -> Result<Slot, Error> {
        let (mut slot, name) = (locked(&self.slot), self.exchange.name());
        let is_recorded = record::mode() != Mode::Eager;
        let fits = slot.as_ref().is_none_or(|slot| slot.is_recorded == is_recorded);
        let got = "one of which only the start or the end is in a recorded step";
        crate::ensure!(fits, Error::value(name, got, "both in the same step"));
        slot.take().ok_or_else(|| Error::value(name, "one", "one not waited for before"))
    }
}

#[pymethods]
impl Started {
    /// Waits until it is done, and writes its elements, one after the other, into tensors.
    fn finish(&self, py: Python<'_>, results: Vec<Bound<'_, Handle>>) -> PyResult<()> {
        handler::refuse("an exchange between processes")?;
        let name = self.exchange.name();
        let to =
            results.iter().map(|one| one.get().target_in(name)).collect::<PyResult<Vec<_>>>()?;
        let slot = self.take()?;
        let (group, bytes, dtype) = (self.group.number(), self.bytes, self.dtype);
        let results = to.iter().map(|view| view.meta.shape.clone()).collect();
        let (exchange, number) = (self.exchange.clone(), slot.number());
        let finish = ExchangeFinish { group, slot: number, exchange, bytes, results, dtype }.into();
        match &to[..] {
            [] => run(py, &finish, Inputs::new(), None).map(drop),
            to => run_into(py, &finish, Inputs::new(), to),
        }
    }
}

/// The exchange that a dictionary describes.
fn exchange(spec: &Bound<'_, PyDict>) -> PyResult<Exchange> {
    handler::refuse("an exchange between processes")?;
    let value = serde_json::Value::Object(attrs::object(spec, 0)?);
    let wrong = |error: serde_json::Error| Error::value("exchange", &value, error.to_string());
    Ok(serde_json::from_value(value.clone()).map_err(wrong)?)
}

/// The tensors that an exchange is given. The operation's own check would name it otherwise.
fn checked(exchange: &Exchange, tensors: Vec<Bound<'_, Handle>>) -> PyResult<Inputs> {
    let given = views(exchange.name(), tensors)?;
    given.iter().try_for_each(|view| exchange.check(view.meta.dtype))?;
    Ok(given.into_iter().collect())
}

fn views(name: &'static str, tensors: Vec<Bound<'_, Handle>>) -> PyResult<Vec<View>> {
    tensors.iter().map(|tensor| tensor.get().view_in(name)).collect()
}

/// A timeout in seconds, which must be a positive number.
fn timeout(seconds: f64) -> PyResult<Duration> {
    let wrong = || format!("timeout: got {seconds} s, want a positive number of seconds");
    let valid = Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero());
    valid.ok_or_else(|| PyValueError::new_err(wrong()))
}

/// A dictionary of integers.
#[cfg(target_os = "linux")]
struct Found<'a, 'py>(&'a Bound<'py, PyDict>);

#[cfg(target_os = "linux")]
impl<'py> Found<'_, 'py> {
    fn get<T: for<'a> FromPyObject<'a, 'py>>(&self, name: &str) -> PyResult<T> {
        let missing = || pyo3::exceptions::PyKeyError::new_err(name.to_owned());
        let value = self.0.get_item(name)?.ok_or_else(missing)?;
        value.extract().map_err(Into::into)
    }
}

#[pymethods]
impl Communicator {
    /// Joins processes of this machine through the shared memory at `path`.
    #[staticmethod]
    fn host(
        py: Python<'_>,
        path: PathBuf,
        rank: usize,
        size: usize,
        seconds: f64,
    ) -> PyResult<Self> {
        let limit = timeout(seconds)?;
        let group = exit::detach(py, || comm::join(&path, rank, size, limit))?;
        Ok(Communicator::of(group))
    }

    /// Starts an exchange of the elements of `tensors`, one after the other. `received` is what is
    /// to be received where nothing is given. A step that is being recorded contains it.
    #[pyo3(signature = (spec, tensors, received=None))]
    fn start(
        &self,
        py: Python<'_>,
        spec: &Bound<'_, PyDict>,
        tensors: Vec<Bound<'_, Handle>>,
        received: Option<Bound<'_, Handle>>,
    ) -> PyResult<Started> {
        let exchange = exchange(spec)?;
        let given = checked(&exchange, tensors)?;
        let received = received.map(|to| to.get().view_in(exchange.name())).transpose()?;
        let receives = received.map(|to| (to.meta.dtype, to.meta.numel()));
        let (group, ranks, slot) =
            (self.group.number(), self.group.size(), self.slots.take(&self.group));
        let metas: Vec<&Meta> = given.iter().map(|view| &*view.meta).collect();
        let start = ExchangeStart { group, ranks, slot: slot.number(), exchange, receives };
        let (dtype, count) = start.elements(&metas);
        let bytes = start.exchange.received(count * dtype.size(), ranks);
        let exchange = start.exchange.clone();
        run(py, &start.into(), given, None)?;
        let (group, slot) = (self.group.clone(), Mutex::new(Some(slot)));
        Ok(Started { group, exchange, dtype, bytes, slot })
    }

    /// This process's number in the group.
    #[getter]
    fn rank(&self) -> usize {
        self.group.rank()
    }

    /// The number of processes.
    #[getter]
    fn size(&self) -> usize {
        self.group.size()
    }

    /// How many bytes this process has given to others in exchanges that are done.
    #[getter]
    fn bytes_sent(&self) -> u64 {
        self.group.bytes_sent()
    }

    /// Times sums over all ranks, which call it together: seconds that one takes whatever its size,
    /// and those of each byte, as rank 0 has found them.
    fn measure(&self, py: Python<'_>) -> PyResult<(f64, f64)> {
        let cost = exit::detach(py, || self.group.measure())?;
        Ok((cost.latency, cost.byte))
    }

    /// Sets the longest that an exchange waits for other ranks.
    fn set_timeout(&self, seconds: f64) -> PyResult<()> {
        self.group.set_timeout(timeout(seconds)?);
        Ok(())
    }

    /// From here on this rank may run other recorded steps than the others.
    fn ignore_steps(&self) {
        self.group.ignore_steps();
    }

    /// Tells the other ranks that this one has failed.
    fn fail(&self, text: &str) {
        self.group.fail(text);
    }

    /// Leaves the group, after what was started.
    fn close(&self, py: Python<'_>) {
        exit::detach(py, || self.group.close());
    }
}

#[cfg(target_os = "linux")]
#[pymethods]
impl Communicator {
    /// Joins processes through the MPI library that mpi4py has loaded, `library` being its module's
    /// file, and `handles` the library's handles and constants. Close it before MPI is finalised.
    #[staticmethod]
    #[allow(unsafe_code)]
    fn mpi(
        py: Python<'_>,
        library: PathBuf,
        handles: &Bound<'_, PyDict>,
        seconds: f64,
    ) -> PyResult<Self> {
        let (limit, found) = (timeout(seconds)?, Found(handles));
        let handles = Handles {
            handle_bytes: found.get("handle_bytes")?,
            status_bytes: found.get("status_bytes")?,
            error_string_bytes: found.get("error_string_bytes")?,
            any_source: found.get("any_source")?,
            byte: found.get("byte")?,
            data: found.get("data")?,
            control: found.get("control")?,
        };
        let open = || {
            // SAFETY: `dist.mpi.connect` takes the handles from the library that it names, which
            // serves several threads; the package closes the group before mpi4py finalises it.
            let transport = unsafe { mpi::open(&library, &handles, limit) };
            comm::open(transport.map_err(comm::refused)?)
        };
        Ok(Communicator::of(exit::detach(py, open)?))
    }
}

/// Checks that tensors can be exchanged so, for a process that is alone.
#[pyfunction]
fn check_exchange(spec: &Bound<'_, PyDict>, tensors: Vec<Bound<'_, Handle>>) -> PyResult<()> {
    checked(&exchange(spec)?, tensors).map(drop)
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    super::add_class::<Started>(module)?;
    super::add_class::<Communicator>(module)?;
    module.add_function(wrap_pyfunction!(check_exchange, module)?)
}
