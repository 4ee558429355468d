//! The properties of its arguments that a graph depends on.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::super::tensor::Handle;
use crate::view::View;

/// The bytes that identify the metas of tensors and which of them share memory.
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

/// Part of a key: the shapes, strides, dtypes and devices of tensors, and for each the first
/// earlier tensor in the same block and the offset from it.
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

/// The first tensor in the same block, and the offset from it.
fn shared(before: &[View], view: &View) -> Option<(usize, isize)> {
    let same = |other: &View| Arc::ptr_eq(&other.block, &view.block);
    let first = before.iter().position(same)?;
    Some((first, view.offset as isize - before[first].offset as isize))
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(signature, module)?)
}
