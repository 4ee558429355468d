//! The changes a recording makes to tensor objects that existed before it, so that they can be
//! undone.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyType};
use pyo3::{PyTraverseError, PyVisit};

use super::tensor::Handle;
use crate::engine::record::{self, Mode};
use crate::error::locked;
use crate::view::View;

thread_local! {
    /// The number of this thread's current recording; 0 if there is none.
    static NUMBER: Cell<u64> = const { Cell::new(0) };
    static OPEN: RefCell<Option<Py<PyJournal>>> = const { RefCell::new(None) };
    /// How many scopes this thread is in whose tensors are state.
    static STATES: Cell<u32> = const { Cell::new(0) };
    /// The step that this thread is in, which no other thread is in; 0 before the first.
    static STEP: Cell<u64> = const { Cell::new(0) };
}

/// Flags tensors created as state in the recording of that number.
const STATE: u64 = 1 << 63;

/// The attributes in which layers name their state, which keeps its names along with its values.
const NAMES: [&str; 2] = ["_name", "_path_name"];

/// See the module's documentation.
#[pyclass(name = "Journal", module = "singa_rs._core", frozen)]
pub(super) struct PyJournal {
    number: u64,
    changes: Mutex<Vec<Change>>,
}

/// A value from before its first change, and whether that change happened while creating state.
struct Change {
    tensor: Py<Handle>,
    before: Before,
    in_state: bool,
}

enum Before {
    /// An attribute; None if it was not set.
    Attribute(Py<PyString>, Option<Py<PyAny>>),
    Class(Py<PyType>),
    View(Option<View>),
}

impl PyJournal {
    fn changes(&self) -> MutexGuard<'_, Vec<Change>> {
        locked(&self.changes)
    }

    fn add(&self, tensor: &Bound<'_, Handle>, before: Before) {
        let in_state = record::mode() == Mode::State;
        let change = Change { tensor: tensor.clone().unbind(), before, in_state };
        self.changes().push(change);
    }
}

#[pymethods]
impl PyJournal {
    #[new]
    fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        PyJournal { number: NEXT.fetch_add(1, Relaxed), changes: Mutex::default() }
    }

    /// Reverts all changes, the last one first; with `keep_state`, all but those made while
    /// creating state.
    #[pyo3(signature = (keep_state=false))]
    fn undo(&self, py: Python<'_>, keep_state: bool) -> PyResult<()> {
        let changes = std::mem::take(&mut *self.changes());
        if !changes.is_empty() {
            crate::block::note_change();
        }
        let undone = changes.iter().rev().filter(|change| !(keep_state && change.in_state));
        // All are undone, whether or not one fails.
        undone.map(|change| change.undo(py)).fold(Ok(()), Result::and)
    }

    /// Commits the changes: discards the old values.
    fn forget(&self) {
        let changes = std::mem::take(&mut *self.changes());
        drop(changes); // after releasing the lock, since dropping may run code
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let Ok(changes) = self.changes.try_lock() else { return Ok(()) };
        for change in changes.iter() {
            visit.call(&change.tensor)?;
            if let Before::Attribute(_, Some(value)) = &change.before {
                visit.call(value)?;
            }
        }
        Ok(())
    }

    fn __clear__(&self) {
        self.forget();
    }
}

impl Change {
    fn undo(&self, py: Python<'_>) -> PyResult<()> {
        let tensor = self.tensor.bind(py);
        match &self.before {
            Before::Class(class) => tensor.setattr(intern!(py, "__class__"), class),
            Before::View(view) => {
                let now = tensor.get().replace(view.clone());
                drop(now);
                Ok(())
            }
            Before::Attribute(name, Some(value)) => attributes(tensor)?.set_item(name, value),
            Before::Attribute(name, None) => {
                let attributes = attributes(tensor)?;
                if attributes.contains(name)? { attributes.del_item(name) } else { Ok(()) }
            }
        }
    }
}

fn attributes<'py>(tensor: &Bound<'py, Handle>) -> PyResult<Bound<'py, PyDict>> {
    Ok(tensor.getattr(intern!(tensor.py(), "__dict__"))?.cast_into()?)
}

/// From here on, tensors that this thread creates belong to the journal's recording.
pub(super) fn open(journal: &Bound<'_, PyJournal>) {
    NUMBER.set(journal.get().number);
    OPEN.set(Some(journal.clone().unbind()));
}

/// Ends the scope opened by [`open`].
pub(super) fn close() {
    NUMBER.set(0);
    drop(OPEN.take());
}

/// The recording that a tensor created at this point belongs to.
pub(super) fn birth() -> u64 {
    match NUMBER.get() {
        0 => 0,
        number if record::mode() == Mode::State => number | STATE,
        number => number,
    }
}

/// The step that a tensor created at this point belongs to: none, if it is state.
pub(super) fn step() -> Option<u64> {
    (STATES.get() == 0).then(|| STEP.get())
}

/// Tensors are state from here on, whether or not the thread records, until `leave_state`.
#[pyfunction]
fn enter_state() {
    STATES.set(STATES.get() + 1);
    record::enter_state();
}

/// Ends the scope opened by `enter_state`.
#[pyfunction]
fn leave_state() {
    STATES.set(STATES.get().saturating_sub(1));
    record::leave_state();
}

#[pymethods]
impl Handle {
    /// Whether it was created since this thread's last step began.
    #[getter]
    fn is_new(&self) -> bool {
        self.step == Some(STEP.get())
    }
}

/// Begins a step of this thread.
#[pyfunction]
fn begin_step() {
    static BEGUN: AtomicU64 = AtomicU64::new(0);
    STEP.set(BEGUN.fetch_add(1, Relaxed) + 1);
}

/// Notes that an attribute of a tensor is about to be set or deleted.
pub(super) fn note_attribute(
    tensor: &Bound<'_, Handle>,
    name: &Bound<'_, PyString>,
) -> PyResult<()> {
    let Some(journal) = journal_for(tensor) else { return Ok(()) };
    let is_state = tensor.get().born() == NUMBER.get() | STATE;
    if is_state && (record::mode() == Mode::State || is_name(name)?) {
        return Ok(());
    }
    let before = if *name == *"__class__" {
        Before::Class(tensor.get_type().unbind())
    } else {
        let value = attributes(tensor)?.get_item(name)?.map(Bound::unbind);
        Before::Attribute(name.clone().unbind(), value)
    };
    journal.get().add(tensor, before);
    Ok(())
}

fn is_name(name: &Bound<'_, PyString>) -> PyResult<bool> {
    let name = name.to_cow()?;
    Ok(NAMES.contains(&&*name))
}

/// Notes that a tensor is about to be rebound to other memory.
pub(super) fn note_view(tensor: &Bound<'_, Handle>, before: Option<View>) {
    if let Some(journal) = journal_for(tensor) {
        journal.get().add(tensor, Before::View(before));
    }
}

/// The journal that records a change of a tensor: none outside of recordings, or for tensors
/// created in the current one.
fn journal_for(tensor: &Bound<'_, Handle>) -> Option<Py<PyJournal>> {
    let number = NUMBER.get();
    if number == 0 || tensor.get().born() == number {
        return None;
    }
    OPEN.with_borrow(|open| open.as_ref().map(|journal| journal.clone_ref(tensor.py())))
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::python::add_class::<PyJournal>(module)?;
    module.add_function(wrap_pyfunction!(begin_step, module)?)?;
    module.add_function(wrap_pyfunction!(enter_state, module)?)?;
    module.add_function(wrap_pyfunction!(leave_state, module)?)
}
