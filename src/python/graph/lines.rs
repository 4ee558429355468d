//! The line of the user's program that an operation comes from, looked up only while recording.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::path::Path;
use std::sync::OnceLock;

use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;
use rustc_hash::FxHashMap;

use super::asking;
use crate::device::live::AtLine;
use crate::engine::record::{self, Mode};

/// The package's folder; files in it are not the user's.
static PACKAGE: OnceLock<String> = OnceLock::new();

thread_local! {
    static SEEN: RefCell<Seen> = RefCell::default();
}

/// What a thread has found out about code objects while it records a step.
#[derive(Default)]
struct Seen {
    /// Whether each belongs to the package, by address; valid because the objects are kept alive.
    codes: FxHashMap<usize, (bool, Py<PyAny>)>,
    /// The recorder's numbers of origins, by line in other code and what asks there.
    origins: FxHashMap<(usize, i32, u32), u32>,
}

/// While this thread records, notes the program's current line.
pub(in crate::python) fn note_line(py: Python<'_>) {
    if record::mode() == Mode::Record && !asking::has_line() {
        let _ = innermost(py, is_known_own, note); // operations without a line are recorded, too
    }
}

/// While the guard lives, large tensors are attributed to the program's current line.
pub(in crate::python) fn at_line(py: Python<'_>) -> AtLine {
    let mut line = None;
    let found = |code: &Bound<'_, PyAny>, number| {
        line = Some(format!("{}:{number}", program_file(file(code)?)?).into());
        Ok(())
    };
    let _ = innermost(py, is_own, found); // tensors without a line are created all the same
    AtLine::new(line)
}

/// Passes the innermost line outside the package to `found`.
fn innermost(
    py: Python<'_>,
    is_own: impl Fn(&Bound<'_, PyAny>) -> PyResult<bool>,
    found: impl FnOnce(&Bound<'_, PyAny>, i32) -> PyResult<()>,
) -> PyResult<()> {
    // SAFETY: returns a borrowed frame, or null if the thread has none.
    let innermost = unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PyEval_GetFrame().cast()) };
    let Some(mut frame) = innermost else { return Ok(()) };
    while !frame.is_none() {
        // SAFETY: it is a frame, whose code object is returned as a new reference.
        let code = unsafe {
            Bound::from_owned_ptr_or_err(py, ffi::PyFrame_GetCode(frame.as_ptr().cast()).cast())
        }?;
        if !is_own(&code)? {
            // SAFETY: it is a frame.
            return found(&code, unsafe { ffi::PyFrame_GetLineNumber(frame.as_ptr().cast()) });
        }
        frame = frame.getattr(intern!(py, "f_back"))?;
    }
    Ok(())
}

/// Whether the code belongs to the package.
fn is_own(code: &Bound<'_, PyAny>) -> PyResult<bool> {
    let file = file(code)?;
    let file = file.to_str()?;
    Ok(PACKAGE.get().is_some_and(|package| Path::new(file).starts_with(package)))
}

/// The same, cached for the duration of a recording.
fn is_known_own(code: &Bound<'_, PyAny>) -> PyResult<bool> {
    let address = code.as_ptr().addr();
    if let Some(known) = SEEN.with_borrow(|seen| seen.codes.get(&address).map(|code| code.0)) {
        return Ok(known);
    }
    let is_own = is_own(code)?;
    let entry = (is_own, code.clone().unbind());
    SEEN.with_borrow_mut(|seen| seen.codes.insert(address, entry));
    Ok(is_own)
}

/// Notes a line of code outside the package.
fn note(code: &Bound<'_, PyAny>, line: i32) -> PyResult<()> {
    let place = (code.as_ptr().addr(), line, asking::number());
    if let Some(number) = SEEN.with_borrow(|seen| seen.origins.get(&place).copied()) {
        record::set_origin_number(number);
        return Ok(());
    }
    asking::set_line(&format!("{}:{line}", program_file(file(code)?)?));
    let number = record::origin().unwrap_or(0);
    SEEN.with_borrow_mut(|seen| seen.origins.insert(place, number));
    Ok(())
}

fn file<'py>(code: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
    Ok(code.getattr(intern!(code.py(), "co_filename"))?.cast_into()?)
}

/// A file of the program as people name it: a notebook's cell has a number, its file a hash.
#[pyfunction]
fn program_file(file: Bound<'_, PyString>) -> PyResult<String> {
    let name = file.to_str()?;
    let is_cell = name.contains("ipykernel_") || name.starts_with("<ipython-input");
    let cell = is_cell.then(|| cell(&file).ok()).flatten();
    Ok(cell.unwrap_or_else(|| name.to_owned()))
}

/// What IPython calls the cell of this file, say `In[3]`.
fn cell(file: &Bound<'_, PyString>) -> PyResult<String> {
    let shell = file.py().import("IPython")?.call_method0("get_ipython")?;
    let found = shell.getattr("compile")?.call_method1("format_code_name", (file,))?;
    Ok(found.extract::<(String, String)>()?.1)
}

/// Clears the cache at the end of a recording.
pub(super) fn forget() {
    asking::forget();
    let seen = SEEN.take();
    drop(seen); // only after taking it, since dropping may run code
}

/// Sets the package's folder.
#[pyfunction]
fn set_package(folder: &str) {
    let _ = PACKAGE.set(folder.into()); // every call passes the same folder
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(set_package, module)?)?;
    module.add_function(wrap_pyfunction!(program_file, module)?)
}
