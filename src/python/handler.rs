//! A function that a thread's operations and views are handed to instead of being run.

use std::cell::RefCell;

use pyo3::call::PyCallArgs;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::error::Error;

thread_local! {
    static HANDLER: RefCell<Option<Py<PyAny>>> = const { RefCell::new(None) };
}

fn replace(handler: Option<Py<PyAny>>) -> Option<Py<PyAny>> {
    HANDLER.with(|held| held.replace(handler))
}

/// From here on, each operation or view of this thread is what `handler(what, inputs)` returns:
/// `what` is the operation, or a view's method and arguments. An operation that writes into tensors
/// is what `handler(what, inputs, outputs)` does. Arrays that become tensors are asked for, too. None
/// ends this. While the handler runs, operations run as usual. Returns the previous handler.
#[pyfunction]
#[pyo3(signature = (handler, /))]
fn set_handler(handler: Option<Py<PyAny>>) -> Option<Py<PyAny>> {
    replace(handler)
}

/// Puts the handler back when it returns.
struct Asked(Option<Py<PyAny>>);

impl Drop for Asked {
    fn drop(&mut self) {
        replace(self.0.take());
    }
}

/// Calls `f` while operations run as usual.
pub(super) fn aside<T>(f: impl FnOnce() -> T) -> T {
    let _asked = Asked(replace(None));
    f()
}

/// What the thread's handler makes of an operation or a view of `inputs`; None without a handler.
pub(super) fn handled<'py>(
    inputs: &Bound<'py, PyTuple>,
    what: impl FnOnce() -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    ask(inputs.py(), || Ok((what()?, inputs)))
}

/// What the thread's handler makes of these arguments, while operations run as usual; None without
/// a handler.
fn ask<'py, A: PyCallArgs<'py>>(
    py: Python<'py>,
    arguments: impl FnOnce() -> PyResult<A>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let asked = Asked(replace(None));
    let handler = asked.0.as_ref().map(|handler| handler.bind(py));
    handler.map(|handler| handler.call1(arguments()?)).transpose()
}

/// Refuses what no handler can stand for, if this thread has one.
///
/// # Errors
/// [`Error::Graph`].
pub(super) fn refuse(what: &'static str) -> crate::Result<()> {
    let message = "it cannot be traced or exported";
    crate::ensure!(!is_set(), Error::graph(what, message));
    Ok(())
}

/// Whether operations of this thread are handed over.
pub(super) fn is_set() -> bool {
    HANDLER.with(|held| held.borrow().is_some())
}

/// Whether the thread's handler has written the results of an operation into tensors.
pub(super) fn has_written(
    op: &Bound<'_, PyAny>,
    inputs: &[Bound<'_, PyAny>],
    outputs: &[Bound<'_, PyAny>],
) -> PyResult<bool> {
    let py = op.py();
    let lists = || Ok((op, PyTuple::new(py, inputs)?, PyTuple::new(py, outputs)?));
    Ok(ask(py, lists)?.is_some())
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(set_handler, module)?)
}
