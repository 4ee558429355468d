//! What a graph depends on of its arguments.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::super::tensor::Handle;
use crate::view::View;

/// The bytes that tell the metas of tensors apart, and which of them share memory.
#[derive(Default)]
struct Signature(Vec<u8>);

impl Hasher for Signature {
    fn finish(&self) -> u64 {
        0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
}

/// A key part: shapes, strides, dtypes and devices of tensors, and which earlier one each shares
/// its block with, and where.
#[pyfunction]
fn signature<'py>(
    py: Python<'py>,
    tensors: Vec<Bound<'py, Handle>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let views = super::recording::views(&tensors)?;
    let mut key = Signature::default();
    for (i, view) in views.iter().enumerate() {
        view.meta.hash(&mut key);
        view.block.device().id().hash(&mut key);
        shared(&views[..i], view).hash(&mut key);
    }
    Ok(PyBytes::new(py, &key.0))
}

/// The first of the tensors in the same block, and how far it lies from there.
fn shared(before: &[View], view: &View) -> Option<(usize, isize)> {
    let same = |other: &View| Arc::ptr_eq(&other.block, &view.block);
    let first = before.iter().position(same)?;
    Some((first, view.offset as isize - before[first].offset as isize))
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(signature, module)?)
}
