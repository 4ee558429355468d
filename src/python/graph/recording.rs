//! A recording as a Python object.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use pyo3::prelude::*;

use super::super::device::PyDevice;
use super::super::exit;
use super::super::journal::{self, PyJournal};
use super::super::tensor::Handle;
use super::executable::PyGraph;
use super::lines;
use crate::engine::record::{self, Mode};
use crate::engine::{self, Budget, Executable, Limits, Options, Recording};
use crate::error::Error;
use crate::graph::Parallel;
use crate::ops::View;

/// What a thread records: from the moment this object is made its operations are only buffered.
#[pyclass(name = "Recording", module = "singa_rs._core", frozen)]
pub(super) struct PyRecording {
    /// None while the thread records.
    recording: Mutex<Option<Recording>>,
    /// The thread that records, while one does.
    open: Mutex<Option<ThreadId>>,
    /// What it changes in tensors that were there before.
    journal: Py<PyJournal>,
}

impl PyRecording {
    fn ended(&self) -> MutexGuard<'_, Option<Recording>> {
        self.recording.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_open(&self, open: bool) -> Option<ThreadId> {
        let mut place = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut place, open.then(|| thread::current().id()))
    }

    /// Ends what this thread records, if it is this.
    fn forget(&self) {
        if self.set_open(false) == Some(thread::current().id()) {
            lines::forget();
            journal::close();
            let _ = record::end(); // it may have ended by an error already
        }
    }

    /// What was recorded, once it has ended. Never call this while holding Python's lock: another
    /// thread may be making a graph of it.
    pub(super) fn with<T: Send>(
        &self,
        op: &'static str,
        f: impl FnOnce(&mut Recording) -> T,
    ) -> PyResult<T> {
        let message = "the recording has not ended";
        let missing = || Error::Graph { op: op.into(), message: message.into() };
        Ok(self.ended().as_mut().map(f).ok_or_else(missing)?)
    }
}

/// A bound for an arena.
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

/// The views of tensors.
pub(super) fn views(tensors: &[Bound<'_, Handle>]) -> PyResult<Vec<View>> {
    tensors.iter().map(|tensor| tensor.get().view()).collect()
}

#[pymethods]
impl PyRecording {
    /// Begins to record a function of these arguments on this thread. What it changes in tensors
    /// that were there before is noted in the journal.
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

    /// Goes on recording after the end, on this thread.
    fn resume(&self, py: Python<'_>) -> PyResult<()> {
        let misuse = |message: &str| Error::Graph { op: "record".into(), message: message.into() };
        if record::mode() != Mode::Eager {
            return Err(misuse("this thread records already").into());
        }
        let recording = self.ended().take().ok_or_else(|| misuse("the recording has not ended"))?;
        record::begin(recording.reopened())?;
        journal::open(self.journal.bind(py));
        self.set_open(true);
        Ok(())
    }

    /// Ends the recording on this thread: operations run again. `results` are what the recorded
    /// function answered; no reference to them is kept.
    fn end(&self, py: Python<'_>, results: Vec<Bound<'_, Handle>>) -> PyResult<()> {
        let results = views(&results)?;
        lines::forget();
        journal::close();
        let engine = engine::cpu();
        let ended = exit::detach(py, || engine.end_recording(&mut engine.turn(), &results))?;
        self.set_open(false);
        *self.ended() = Some(ended);
        Ok(())
    }

    /// Ends the recording on this thread, and forgets what was recorded. Tensors that were made in
    /// it can never be read.
    fn abort(&self) {
        self.forget();
    }

    /// Decides what lies in the arena: everything that was made, but for what was answered and
    /// what is held by a tensor at this moment.
    fn seal(&self, py: Python<'_>) -> PyResult<()> {
        exit::detach(py, || self.with("seal", Recording::seal))
    }

    /// Whether state was drawn at random after recorded operations had drawn from the same
    /// generator. False before the end.
    #[getter]
    fn state_is_late(&self) -> bool {
        self.ended().as_ref().is_some_and(Recording::state_is_late)
    }

    /// None where another recording is the same stream of operations on the same tensors, both
    /// sealed; else what differs first, and where in the program.
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

    /// The analysed, planned graph, for as many threads as the device has at the moment; of the
    /// operations as they were recorded without `rewrite`,
    /// with replacements that change results within rounding where it need not be `exact`. Without
    /// `recompute` all is kept until it is needed no more, without `keep` nothing from run to run.
    /// With `check_finite` it is as recorded, and its runs stop at the first NaN or infinity. It is
    /// for several threads where it is to be `parallel`, and these gain so many nanoseconds. The
    /// arena keeps to `memory_budget`, bytes or a part of what it takes without `recompute`. What
    /// is done does not depend on what it gains where there are no `limits`.
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
        let engine = engine::cpu();
        let usual = Parallel::new(engine.device().threads());
        let least_gain = least_gain.unwrap_or(usual.least_gain);
        let parallel = parallel.then_some(Parallel { least_gain, ..usual });
        let budget = memory_budget.map(Budget::from);
        let limits = if limits { Limits::DEFAULT } else { Limits::NONE };
        let options =
            Options { rewrite, recompute, exact, keep, check_finite, parallel, budget, limits };
        let make = |recording: &mut Recording| {
            recording.follow_threads(engine)?;
            Executable::new(engine, recording, &options)
        };
        let made = exit::detach(py, || self.with("graph", make))??;
        Ok(PyGraph::new(made))
    }
}

/// A recording that nobody can end any more, as after an interrupt, must not go on.
impl Drop for PyRecording {
    fn drop(&mut self) {
        self.forget();
    }
}
