//! Which line of the user's program an operation comes from: looked up only while recording.

use std::cell::{Cell, RefCell};
use std::sync::OnceLock;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use rustc_hash::FxHashMap;

use crate::engine::record::{self, Mode};

/// Files in this folder are not the user's.
static PACKAGE: OnceLock<String> = OnceLock::new();
/// `sys._getframe`.
static FRAME: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

thread_local! {
    /// Whether operations come from a line that was set by hand, as those of backward do.
    static IS_SET: Cell<bool> = const { Cell::new(false) };
    /// The files of code objects by address (which hold for as long as the objects are kept),
    /// None for the package's own.
    static FILES: RefCell<FxHashMap<usize, File>> = RefCell::default();
}

struct File {
    _code: Py<PyAny>,
    name: Option<String>,
}

/// While this thread records, notes the line that the program is at.
pub(in crate::python) fn note_line(py: Python<'_>) {
    if record::mode() != Mode::Record || IS_SET.get() {
        return;
    }
    if let Ok(Some(line)) = user_line(py) {
        record::set_line(&line);
    }
}

/// File and number of the innermost line that is not the package's.
fn user_line(py: Python<'_>) -> PyResult<Option<String>> {
    let get = FRAME
        .get_or_try_init(py, || Ok::<_, PyErr>(py.import("sys")?.getattr("_getframe")?.unbind()))?;
    let mut frame = get.bind(py).call0()?;
    while !frame.is_none() {
        if let Some(file) = file(&frame.getattr(intern!(py, "f_code"))?)? {
            let line: u32 = frame.getattr(intern!(py, "f_lineno"))?.extract()?;
            return Ok(Some(format!("{file}:{line}")));
        }
        frame = frame.getattr(intern!(py, "f_back"))?;
    }
    Ok(None)
}

/// The file of a code object, unless it is one of the package.
fn file(code: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    let address = code.as_ptr().addr();
    if let Some(known) = FILES.with_borrow(|files| files.get(&address).map(|f| f.name.clone())) {
        return Ok(known);
    }
    let file: String = code.getattr(intern!(code.py(), "co_filename"))?.extract()?;
    let is_own = PACKAGE.get().is_some_and(|package| file.starts_with(package));
    let name = (!is_own).then_some(file);
    let entry = File { _code: code.clone().unbind(), name: name.clone() };
    FILES.with_borrow_mut(|files| files.insert(address, entry));
    Ok(name)
}

/// Forgets code objects, at the end of a recording.
pub(super) fn forget() {
    let files = FILES.take();
    IS_SET.set(false);
    drop(files);
}

/// Says which folder is this package's.
#[pyfunction]
fn set_package(folder: &str) {
    let _ = PACKAGE.set(folder.into()); // it is the same each time
}

/// The operations that follow come from a line that `origin` told; 0: from where the program is.
#[pyfunction]
fn set_origin(number: u32) {
    IS_SET.set(number != 0);
    if number != 0 {
        record::set_line_number(number);
    }
}

/// The line that the last recorded operation came from, as a number; 0 where there is none.
#[pyfunction]
fn origin() -> u32 {
    record::line().unwrap_or(0)
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(set_package, module)?)?;
    module.add_function(wrap_pyfunction!(set_origin, module)?)?;
    module.add_function(wrap_pyfunction!(origin, module)?)
}
