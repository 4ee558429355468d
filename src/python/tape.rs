//! What the tape saves of a tensor for the backward pass, and what it asks of many tensors at once.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use smallvec::SmallVec;

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
        let view = self.place()?;
        let version = view.block.version();
        Ok(Saved { view, version })
    }
}

/// For each gradient, whether it may be written: it is a tensor without repeated elements, in a
/// block that neither another gradient nor a tensor of `held` uses.
#[pyfunction]
fn separate(grads: Vec<Bound<'_, PyAny>>, held: Vec<Bound<'_, PyAny>>) -> PyResult<Vec<bool>> {
    let block = |object: &Bound<'_, PyAny>| {
        object.cast::<Handle>().ok().map(|tensor| tensor.get().block_id()).transpose()
    };
    let blocks = grads.iter().chain(&held).map(block);
    let blocks = blocks.collect::<PyResult<SmallVec<[Option<usize>; 8]>>>()?;
    let is_alone = |id| blocks.iter().filter(|other| **other == Some(id)).count() == 1;
    let is_separate = |(object, block): (&Bound<'_, PyAny>, &Option<usize>)| match block {
        Some(id) if is_alone(*id) => {
            Ok(!object.cast::<Handle>()?.get().meta()?.strides.contains(&0))
        }
        _ => Ok(false),
    };
    grads.iter().zip(&blocks).map(is_separate).collect()
}

/// Whether all these objects are tensors on one device.
#[pyfunction]
#[pyo3(signature = (*tensors))]
fn on_one_device(tensors: &Bound<'_, PyTuple>) -> PyResult<bool> {
    let mut first = None;
    for object in tensors.iter_borrowed() {
        let Ok(tensor) = object.cast::<Handle>() else { return Ok(false) };
        let id = tensor.get().device_id()?;
        if *first.get_or_insert(id) != id {
            return Ok(false);
        }
    }
    Ok(true)
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::python::add_class::<Saved>(module)?;
    module.add_function(wrap_pyfunction!(separate, module)?)?;
    module.add_function(wrap_pyfunction!(on_one_device, module)?)
}
