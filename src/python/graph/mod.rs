//! Recordings and graphs as Python objects.

mod arguments;
mod executable;
mod lines;
mod recording;
mod shortcut;
mod signature;
mod watch;

use pyo3::prelude::*;

pub(super) use lines::{at_line, note_line};

/// Whether this thread records.
#[pyfunction(name = "recording")]
fn is_recording() -> bool {
    crate::engine::record::mode() != crate::engine::record::Mode::Eager
}

/// Whether this thread is in user code that a running graph has called.
#[pyfunction(name = "running")]
fn is_running() -> bool {
    crate::engine::runs_graph()
}

/// What is made from now on in a recording is state, until `leave_state`.
#[pyfunction]
fn enter_state() {
    crate::engine::record::enter_state();
}

/// The end of what `enter_state` began.
#[pyfunction]
fn leave_state() {
    crate::engine::record::leave_state();
}

/// Counts the changes of what a recording may have seen of the program's state: tensors that were
/// pointed to other memory, and calls of `note_change`.
#[pyfunction]
fn changes() -> u64 {
    crate::block::changes()
}

/// Adds to `changes`.
#[pyfunction]
fn note_change() {
    crate::block::note_change();
}

/// Whether operations that this thread runs from now on fail where they make a NaN or an infinity;
/// what it was before.
#[pyfunction]
fn check_finite(is_asked: bool) -> bool {
    crate::engine::check_finite(is_asked)
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::python::add_class::<recording::PyRecording>(module)?;
    crate::python::add_class::<executable::PyGraph>(module)?;
    crate::python::add_class::<watch::PyWatch>(module)?;
    crate::python::add_class::<shortcut::PyShortcut>(module)?;
    module.add_function(wrap_pyfunction!(is_recording, module)?)?;
    module.add_function(wrap_pyfunction!(is_running, module)?)?;
    module.add_function(wrap_pyfunction!(enter_state, module)?)?;
    module.add_function(wrap_pyfunction!(leave_state, module)?)?;
    module.add_function(wrap_pyfunction!(changes, module)?)?;
    module.add_function(wrap_pyfunction!(note_change, module)?)?;
    module.add_function(wrap_pyfunction!(check_finite, module)?)?;
    arguments::register(module)?;
    lines::register(module)?;
    signature::register(module)
}
