//! What the tape saves of a tensor for the backward pass.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::tensor::{self, Handle};
use crate::view::View;

/// A view, and the version of its memory when it was saved. Cheaper than a tensor, and never part
/// of a reference cycle.
#[pyclass(module = "singa_rs._core", frozen)]
pub(super) struct Saved {
    view: View,
    version: u64,
}

#[pymethods]
impl Saved {
    /// The tensor as it was saved; None if its memory has been written since.
    fn load<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, Handle>>> {
        if self.view.block.version() != self.version {
            return Ok(None);
        }
        tensor::make(py, self.view.clone()).map(Some)
    }

    /// Extents, a tuple.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.view.meta.shape.iter())
    }

    /// As `Handle.block_id`.
    #[getter]
    fn block_id(&self) -> usize {
        Arc::as_ptr(&self.view.block).addr()
    }
}

#[pymethods]
impl Handle {
    /// Saves the view and the version of its memory.
    fn saved(&self) -> PyResult<Saved> {
        let view = self.view()?;
        let version = view.block.version();
        Ok(Saved { view, version })
    }
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::python::add_class::<Saved>(module)
}
