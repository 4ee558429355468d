//! Python's interface to the libraries loaded at run time.

use pyo3::prelude::*;

use crate::device::{onednn, team};
use crate::kernels::{self, Target};

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

/// What the CPU's kernels run with: how many threads the process may use now, the processors' time
/// that its control group grants (in processors), and the instruction set of kernels.
#[pyfunction]
fn machine() -> (usize, Option<f64>, &'static str) {
    let instructions = kernels::target(kernels::host()).map_or("none", Target::instructions);
    (team::allowed_threads(), team::quota(), instructions)
}

/// Warnings about missing libraries for the user; each is returned once.
#[pyfunction]
fn take_warnings() -> Vec<String> {
    onednn::take_warning().into_iter().collect()
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(offer_onednn, module)?)?;
    module.add_function(wrap_pyfunction!(library, module)?)?;
    module.add_function(wrap_pyfunction!(machine, module)?)?;
    module.add_function(wrap_pyfunction!(take_warnings, module)?)
}
