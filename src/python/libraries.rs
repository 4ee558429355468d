//! Python's interface to the libraries loaded at run time.

use pyo3::prelude::*;

use crate::device::onednn;

/// Offers oneDNN's shared library at `path`, unless the environment names another. Has an effect
/// only before the first operation that uses it.
#[pyfunction]
fn offer_onednn(path: std::path::PathBuf) {
    onednn::offer(path);
}

/// The library for convolutions and matrix products: `onednn X.Y` or `portable`.
#[pyfunction]
fn library() -> String {
    onednn::name()
}

/// Warnings about missing libraries for the user; each is returned once.
#[pyfunction]
fn take_warnings() -> Vec<String> {
    onednn::take_warning().into_iter().collect()
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(offer_onednn, module)?)?;
    module.add_function(wrap_pyfunction!(library, module)?)?;
    module.add_function(wrap_pyfunction!(take_warnings, module)?)
}
