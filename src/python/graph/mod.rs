//! Recordings and graphs as Python objects.

mod arguments;
mod asking;
mod executable;
mod lines;
mod recording;
mod shortcut;
mod signature;
mod step;
mod watch;

use pyo3::prelude::*;

pub(super) use lines::{at_line, note_line};

/// Whether this thread records.
#[pyfunction(name = "recording")]
fn is_recording() -> bool {
    crate::engine::record::mode() != crate::engine::record::Mode::Eager
}

/// Whether this thread runs user code called by a running graph.
#[pyfunction(name = "running")]
fn is_running() -> bool {
    crate::engine::runs_graph()
}

/// The number of changes to program state that a recording may have seen: tensors rebound to other
/// memory, and calls of `note_change`.
#[pyfunction]
fn changes() -> u64 {
    crate::block::changes()
}

/// Increments `changes`.
#[pyfunction]
fn note_change() {
    crate::block::note_change();
}

/// Sets whether this thread's operations fail when they produce a NaN or an infinity; returns the
/// previous setting.
#[pyfunction]
fn check_finite(is_asked: bool) -> bool {
    crate::engine::check_finite(is_asked)
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::python::add_class::<recording::PyRecording>(module)?;
    crate::python::add_class::<executable::PyGraph>(module)?;
    crate::python::add_class::<step::PyStep>(module)?;
    crate::python::add_class::<watch::PyWatch>(module)?;
    crate::python::add_class::<shortcut::PyShortcut>(module)?;
    module.add_function(wrap_pyfunction!(is_recording, module)?)?;
    module.add_function(wrap_pyfunction!(is_running, module)?)?;
    module.add_function(wrap_pyfunction!(changes, module)?)?;
    module.add_function(wrap_pyfunction!(note_change, module)?)?;
    module.add_function(wrap_pyfunction!(check_finite, module)?)?;
    arguments::register(module)?;
    asking::register(module)?;
    lines::register(module)?;
    signature::register(module)
}
