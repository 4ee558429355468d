//! A recording as a Python object.

use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, ThreadId};

use pyo3::prelude::*;

use super::super::device::PyDevice;
use super::super::exit;
use super::super::file::PyFile;
use super::super::journal::{self, PyJournal};
use super::super::tensor::Handle;
use super::executable::PyGraph;
use super::lines;
use crate::engine::record::{self, Mode};
use crate::engine::{self, Budget, Executable, Limits, Options, Recording};
use crate::error::{Error, locked};
use crate::graph::Parallel;
use crate::ops::View;
use crate::step::{self, Names, Returned, Settings};

/// A recording on one thread: once it is created, the thread's operations are only buffered.
#[pyclass(name = "Recording", module = "singa_rs._core", frozen)]
pub(super) struct PyRecording {
    /// None while the thread records.
    recording: Mutex<Option<Recording>>,
    /// The recording thread, while it records.
    open: Mutex<Option<ThreadId>>,
    /// The changes the recording makes to tensors that existed before it.
    journal: Py<PyJournal>,
}

impl PyRecording {
    fn ended(&self) -> MutexGuard<'_, Option<Recording>> {
        locked(&self.recording)
    }

    fn set_open(&self, open: bool) -> Option<ThreadId> {
        let mut place = locked(&self.open);
        std::mem::replace(&mut place, open.then(|| thread::current().id()))
    }

    /// Ends the recording if this thread is recording it.
    fn forget(&self) {
        if self.set_open(false) == Some(thread::current().id()) {
            lines::forget();
            journal::close();
            let _ = record::end(); // an error may have ended it already
        }
    }

    /// The recording, once it has ended. Must not be called while holding the GIL: another thread
    /// may be building a graph from it.
    pub(super) fn with<T: Send>(
        &self,
        op: &'static str,
        f: impl FnOnce(&mut Recording) -> T,
    ) -> PyResult<T> {
        let message = "the recording has not ended";
        let missing = || Error::graph(op, message);
        Ok(self.ended().as_mut().map(f).ok_or_else(missing)?)
    }
}

/// A budget for an arena.
#[derive(FromPyObject)]
enum PyBudget {
    Bytes(usize),
    Share(f64),
}

impl From<PyBudget> for Budget {
    fn from(budget: PyBudget) -> Budget {
        match budget {
            PyBudget::Bytes(bytes) => Budget::Bytes(bytes),
            PyBudget::Share(share) => Budget::Share(share),
        }
    }
}

/// Where a result of a step comes from.
#[derive(FromPyObject)]
enum PyReturned<'py> {
    Of(String, usize),
    Held(Bound<'py, Handle>),
}

impl PyReturned<'_> {
    fn returned(&self) -> PyResult<Returned> {
        match self {
            PyReturned::Of(kind, index) if kind == "made" => Ok(Returned::Made(*index)),
            PyReturned::Of(kind, index) if kind == "argument" => Ok(Returned::Argument(*index)),
            PyReturned::Of(kind, _) => {
                Err(Error::value("save_step", kind, "made, argument or a tensor").into())
            }
            PyReturned::Held(tensor) => Ok(Returned::Held(tensor.get().place()?)),
        }
    }
}

/// The views of the tensors.
pub(super) fn views(tensors: &[Bound<'_, Handle>]) -> PyResult<Vec<View>> {
    tensors.iter().map(|tensor| tensor.get().view()).collect()
}

#[pymethods]
impl PyRecording {
    /// Begins to record a function of these arguments on this thread. Its changes to tensors that
    /// existed before are noted in the journal.
    #[new]
    fn new(
        device: &PyDevice,
        arguments: Vec<Bound<'_, Handle>>,
        journal: &Bound<'_, PyJournal>,
    ) -> PyResult<Self> {
        engine::of(&device.0)?;
        record::begin(Recording::new(&device.0, &views(&arguments)?))?;
        journal::open(journal);
        let open = Mutex::new(Some(thread::current().id()));
        Ok(PyRecording { recording: Mutex::new(None), open, journal: journal.clone().unbind() })
    }

    /// Resumes an ended recording on this thread.
    fn resume(&self, py: Python<'_>) -> PyResult<()> {
        let misuse = |message: &str| Error::graph("record", message);
        if record::mode() != Mode::Eager {
            return Err(misuse("this thread records already").into());
        }
        let recording = self.ended().take().ok_or_else(|| misuse("the recording has not ended"))?;
        record::begin(recording.reopened())?;
        journal::open(self.journal.bind(py));
        self.set_open(true);
        Ok(())
    }

    /// Ends the recording on this thread: operations execute again. `results` are the return values
    /// of the recorded function; no references to them are kept.
    fn end(&self, py: Python<'_>, results: Vec<Bound<'_, Handle>>) -> PyResult<()> {
        let results = views(&results)?;
        lines::forget();
        journal::close();
        let ended = exit::detach(py, || engine::end_recording(&results))?;
        self.set_open(false);
        *self.ended() = Some(ended);
        Ok(())
    }

    /// Ends the recording on this thread and discards it. Tensors created in it can never be read.
    fn abort(&self) {
        self.forget();
    }

    /// Decides what is placed in the arena: everything created in the recording, except results and
    /// whatever a tensor object holds at this moment.
    fn seal(&self, py: Python<'_>) -> PyResult<()> {
        exit::detach(py, || self.with("seal", Recording::seal))
    }

    /// Whether state was drawn at random after recorded operations had drawn from the same
    /// generator. False until the recording ends.
    #[getter]
    fn state_is_late(&self) -> bool {
        self.ended().as_ref().is_some_and(Recording::state_is_late)
    }

    /// Whether a value was asked for, which a recording does not have. False until the recording
    /// ends.
    #[getter]
    fn was_read(&self) -> bool {
        self.ended().as_ref().is_some_and(Recording::was_read)
    }

    /// None if both recordings are sealed and have the same stream of operations on the same
    /// tensors; otherwise the first difference, and where it is in the program.
    fn difference(&self, py: Python<'_>, other: &PyRecording) -> PyResult<Option<String>> {
        if std::ptr::eq(self, other) {
            return Ok(None);
        }
        exit::detach(py, || {
            let other = other.ended();
            let Some(other) = &*other else { return Ok(Some("the other has not ended".into())) };
            self.with("difference", |recording| recording.difference(other))
        })
    }

    /// The analysed, planned graph, for the device's current number of threads. Without `rewrite`
    /// it has the operations as recorded; replacements that change results within rounding are
    /// allowed unless it must be `exact`. Without `recompute` every value is kept until its last
    /// use, without `keep` nothing is kept from run to run. With `check_finite` the operations are
    /// as recorded, and a run stops at the first NaN or infinity. If it is to be `parallel`,
    /// operations are spread over several threads where that gains at least `least_gain`
    /// nanoseconds. The arena keeps to `memory_budget`, in bytes or as a share of what it takes
    /// without `recompute`. Without `limits`, optimisations are applied whatever they gain.
    #[pyo3(signature = (
        *, rewrite=true, recompute=true, exact=true, keep=true, check_finite=false, parallel=false,
        least_gain=None, memory_budget=None, limits=true
    ))]
    #[allow(clippy::too_many_arguments)]
    fn graph(
        &self,
        py: Python<'_>,
        rewrite: bool,
        recompute: bool,
        exact: bool,
        keep: bool,
        check_finite: bool,
        parallel: bool,
        least_gain: Option<u64>,
        memory_budget: Option<PyBudget>,
        limits: bool,
    ) -> PyResult<PyGraph> {
        let device = self.with("graph", |recording| recording.device().clone())?;
        let engine = engine::of(&device)?;
        let usual = Parallel::new(engine.device().threads());
        let least_gain = least_gain.unwrap_or(usual.least_gain);
        let parallel = parallel.then_some(Parallel { least_gain, ..usual });
        let budget = memory_budget.map(Budget::from);
        let limits = if limits { Limits::DEFAULT } else { Limits::NONE };
        let options =
            Options { rewrite, recompute, exact, keep, check_finite, parallel, budget, limits };
        let make = |recording: &mut Recording| Executable::new(engine, recording, &options);
        let made = exit::detach(py, || self.with("graph", make))??;
        Ok(PyGraph::new(Arc::new(made)))
    }

    /// Writes the recording as a step, with the present contents of all that it uses. `arguments`
    /// are the names of its arguments; each of `results` is a name and ("made", index of one of
    /// the recording's results), ("argument", index) or a tensor; `states` are tensors by name, of
    /// which those are kept that the recording uses. The rest is as for `graph`.
    #[pyo3(signature = (
        file, arguments, results, states, *, exact, check_finite, parallel, memory_budget
    ))]
    #[allow(clippy::too_many_arguments)]
    fn write(
        &self,
        file: &Bound<'_, PyAny>,
        arguments: Vec<String>,
        results: Vec<(String, PyReturned<'_>)>,
        states: Vec<(String, Bound<'_, Handle>)>,
        exact: bool,
        check_finite: bool,
        parallel: bool,
        memory_budget: Option<PyBudget>,
    ) -> PyResult<()> {
        let budget = memory_budget.map(Budget::from);
        let settings = Settings { exact, check_finite, parallel, budget };
        let results = results.into_iter().map(|(name, result)| Ok((name, result.returned()?)));
        let states = states.into_iter().map(|(name, state)| Ok((name, state.get().place()?)));
        let (results, states) =
            (results.collect::<PyResult<_>>()?, states.collect::<PyResult<_>>()?);
        let names = Names { arguments, results, states };
        let mut writer = PyFile::new(file);
        let write = |recording: &mut Recording| {
            let engine = engine::of(&recording.device().clone())?;
            step::write(engine, recording, settings, names, &mut writer)
        };
        let written = exit::detach(file.py(), || self.with("save_step", write))?;
        writer.finish(written)
    }
}

/// A recording that can never be ended, as after an interrupt, must not continue.
impl Drop for PyRecording {
    fn drop(&mut self) {
        self.forget();
    }
}
