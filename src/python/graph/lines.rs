//! Which line of the user's program an operation comes from: looked up only while recording.

use std::sync::OnceLock;

use pyo3::prelude::*;
use pyo3::types::PyAnyMethods;

use crate::engine::record::{self, Mode};

/// Frames of files in this folder are not the user's.
static PACKAGE: OnceLock<String> = OnceLock::new();

thread_local! {
    /// Whether a line was set by hand, which is what backward does.
    static IS_SET: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// While this thread records, notes the line that the program is at.
pub(in crate::python) fn note_line(py: Python<'_>) {
    if record::mode() == Mode::Record
        && !IS_SET.get()
        && let Some(line) = user_line(py)
    {
        record::set_line(&line);
    }
}

/// File and number of the innermost line that is not this package's.
fn user_line(py: Python<'_>) -> Option<String> {
    let package = PACKAGE.get()?;
    let get_frame = py.import("sys").ok()?.getattr("_getframe").ok()?;
    let mut frame = get_frame.call0().ok()?;
    loop {
        let file: String =
            frame.getattr("f_code").ok()?.getattr("co_filename").ok()?.extract().ok()?;
        if !file.starts_with(package) {
            let line: u32 = frame.getattr("f_lineno").ok()?.extract().ok()?;
            return Some(format!("{file}:{line}"));
        }
        frame = frame.getattr("f_back").ok()?;
        if frame.is_none() {
            return None;
        }
    }
}

/// Says which folder is this package's.
#[pyfunction]
fn set_package(folder: &str) {
    let _ = PACKAGE.set(folder.into()); // the same each time
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
