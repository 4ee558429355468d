//! The extension module `singa_rs._core`: the only room that knows Python.

mod args;
mod attrs;
mod device;
mod dlpack;
mod dtype;
mod error;
mod exit;
mod graph;
mod host;
mod journal;
mod libraries;
mod numpy;
mod op;
mod saved;
mod tensor;
mod views;

use pyo3::prelude::*;

use crate::ops::Kind;

/// The names of all operations, family by family.
#[pyfunction]
fn operations() -> Vec<&'static str> {
    Kind::names()
}

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    exit::register();
    error::register(module)?;
    dtype::register(module)?;
    device::register(module)?;
    tensor::register(module)?;
    numpy::register(module)?;
    dlpack::register(module)?;
    op::register(module)?;
    graph::register(module)?;
    saved::register(module)?;
    host::register(module)?;
    journal::register(module)?;
    libraries::register(module)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(operations, module)?)
}
