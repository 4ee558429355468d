//! The extension module `singa_rs._core`: the only module that depends on Python.

mod args;
mod attrs;
mod comm;
mod device;
mod divided;
mod dlpack;
mod dtype;
mod error;
mod exit;
mod file;
mod gpu;
mod graph;
mod handler;
mod host;
mod journal;
mod libraries;
mod numpy;
mod op;
mod tape;
mod tensor;
mod views;

use pyo3::PyClass;
use pyo3::prelude::*;

use crate::ops::Kind;

/// The alignment that Python's allocator guarantees, which references into objects rely on.
const ALIGNMENT: usize = 2 * size_of::<usize>();

/// Adds a class to the module.
fn add_class<T: PyClass>(module: &Bound<'_, PyModule>) -> PyResult<()> {
    const { assert!(align_of::<T>() <= ALIGNMENT, "Python aligns no object to this") };
    module.add_class::<T>()
}

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
    gpu::register(module)?;
    tensor::register(module)?;
    divided::register(module)?;
    numpy::register(module)?;
    dlpack::register(module)?;
    op::register(module)?;
    graph::register(module)?;
    tape::register(module)?;
    handler::register(module)?;
    host::register(module)?;
    journal::register(module)?;
    libraries::register(module)?;
    comm::register(module)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(operations, module)?)
}
