//! A recording as a Python object.

use std::sync::{Arc, Mutex};
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

/// Why a recording cannot be used, or changed.
const NOT_ENDED: &str = "the recording has not ended";
const IS_USED: &str = "another thread is using the recording";

/// A recording on one thread: once it is created, the thread's operations are only buffered.
#[pyclass(name = "Recording", module = "singa_rs._core", frozen)]
pub(super) struct PyRecording {
    /// None while the thread records. Locked for a moment only: what is done with a recording may
    /// take long, and run user code.
    recording: Mutex<Option<Arc<Recording>>>,
    /// The recording thread, while it records.
    open: Mutex<Option<ThreadId>>,
    /// The changes the recording makes to tensors that existed before it.
    journal: Py<PyJournal>,
}

impl PyRecording {
    /// The recording, once it has ended.
    fn ended(&self) -> Option<Arc<Recording>> {
        locked(&self.recording).clone()
    }

    /// The same, for an operation that needs it.
    pub(super) fn get(&self, op: &'static str) -> PyResult<Arc<Recording>> {
        Ok(self.ended().ok_or_else(|| Error::graph(op, NOT_ENDED))?)
    }

    /// Takes the recording out, if no other thread is using it.
    fn take(&self) -> Result<Recording, Error> {
        let (mut place, misuse) = (locked(&self.recording), |why| Error::graph("record", why));
        let recording = place.take().ok_or_else(|| misuse(NOT_ENDED))?;
        Arc::try_unwrap(recording).map_err(|used| {
            *place = Some(used);
            misuse(IS_USED)
        })
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
        let message = "this thread records already";
        let is_free = record::mode() == Mode::Eager;
        crate::ensure!(is_free, Error::graph("record", message).into());
        record::begin(self.take()?.reopened())?;
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
        *locked(&self.recording) = Some(Arc::new(ended));
        Ok(())
    }

    /// Ends the recording on this thread and discards it. Tensors created in it can never be read.
    fn abort(&self) {
        self.forget();
    }

    /// Decides what is placed in the arena: everything created in the recording, except results and
    /// whatever a tensor object holds at this moment.
    fn seal(&self, py: Python<'_>) -> PyResult<()> {
        exit::detach(py, || {
            let refusal = |message: &str| Error::graph("seal", message);
            let mut place = locked(&self.recording);
            let recording = place.as_mut().ok_or_else(|| refusal(NOT_ENDED))?;
            Arc::get_mut(recording).ok_or_else(|| refusal(IS_USED))?.seal();
            Ok(())
        })
    }

    /// Whether state was drawn at random after recorded operations had drawn from the same
    /// generator. False until the recording ends.
    #[getter]
    fn state_is_late(&self) -> bool {
        self.ended().is_some_and(|recording| recording.state_is_late())
    }

    /// Whether a value was asked for, which a recording does not have. False until the recording
    /// ends.
    #[getter]
    fn was_read(&self) -> bool {
        self.ended().is_some_and(|recording| recording.was_read())
    }

    /// None if both recordings are sealed and have the same stream of operations on the same
    /// tensors; otherwise the first difference, and where it is in the program.
    fn difference(&self, py: Python<'_>, other: &PyRecording) -> PyResult<Option<String>> {
        if std::ptr::eq(self, other) {
            return Ok(None);
        }
        let recording = self.get("difference")?;
        let Some(other) = other.ended() else { return Ok(Some("the other has not ended".into())) };
        Ok(exit::detach(py, || recording.difference(&other)))
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
        let recording = self.get("graph")?;
        let engine = engine::of(recording.device())?;
        let usual = Parallel::new(engine.device().threads());
        let least_gain = least_gain.unwrap_or(usual.least_gain);
        let parallel = parallel.then_some(Parallel { least_gain, ..usual });
        let budget = memory_budget.map(Budget::from);
        let limits = if limits { Limits::DEFAULT } else { Limits::NONE };
        let options =
            Options { rewrite, recompute, exact, keep, check_finite, parallel, budget, limits };
        let made = exit::detach(py, || Executable::new(engine, &recording, &options))?;
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
        let recording = self.get("save_step")?;
        let mut writer = PyFile::new(file);
        let written = exit::detach(file.py(), || {
            let engine = engine::of(recording.device())?;
            step::write(engine, &recording, settings, names, &mut writer)
        });
        writer.finish(written)
    }
}

/// A recording that can never be ended, as after an interrupt, must not continue.
impl Drop for PyRecording {
    fn drop(&mut self) {
        self.forget();
    }
}
