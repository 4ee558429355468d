//! Placeholder tensors for arguments while a function is recorded.

use std::sync::Arc;

use pyo3::prelude::*;

use super::super::tensor::{self, Handle};
use super::super::{args::Extents, device::PyDevice, dtype};
use super::recording::views;
use crate::block::{Block, Latest};
use crate::device::Device;
use crate::view::{Meta, View};

fn block(device: &Arc<Device>, bytes: usize) -> Arc<Block> {
    Block::recorded(device, bytes, "the call that got it as an argument".into())
}

/// A placeholder tensor for an argument without a value.
#[pyfunction]
fn stand_in<'py>(
    py: Python<'py>,
    shape: Extents,
    device: &PyDevice,
    dtype: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, Handle>> {
    let Extents(shape) = shape;
    shape.checked_numel("tensor")?;
    let meta = Meta::new(dtype::parse(dtype)?, shape);
    let block = block(&device.0, meta.bytes());
    tensor::make(py, View { block, meta: Arc::new(meta), offset: 0 })
}

/// A placeholder for each of these tensors: the same view of a block without a value. Tensors that
/// share memory have placeholders that share it, too.
#[pyfunction]
fn stand_ins<'py>(
    py: Python<'py>,
    tensors: Vec<Bound<'py, Handle>>,
) -> PyResult<Vec<Bound<'py, Handle>>> {
    let views = views(&tensors)?;
    let mut made: Vec<Arc<Block>> = Vec::with_capacity(views.len());
    for view in &views {
        let same = |other: &View| Arc::ptr_eq(&other.block, &view.block);
        let first = views.iter().position(same).expect("the view itself");
        let known = made.get(first).cloned();
        made.push(known.unwrap_or_else(|| block(view.block.device(), view.block.bytes())));
    }
    let stand_in = |(view, block)| tensor::make(py, View { block, ..view });
    views.into_iter().zip(made).map(stand_in).collect()
}

/// From here on placeholders, and tensors that share their memory, show the tensors they stand for.
#[pyfunction]
fn show(stand_ins: Vec<Bound<'_, Handle>>, tensors: Vec<Bound<'_, Handle>>) -> PyResult<()> {
    for (stand_in, view) in views(&stand_ins)?.iter().zip(views(&tensors)?) {
        // For placeholders that share memory, the first has done it for all.
        if !Arc::ptr_eq(&stand_in.block, &view.block) {
            let latest = Arc::<Latest>::default();
            latest.set(view.block);
            stand_in.block.follow(&latest);
        }
    }
    Ok(())
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(stand_in, module)?)?;
    module.add_function(wrap_pyfunction!(stand_ins, module)?)?;
    module.add_function(wrap_pyfunction!(show, module)?)
}
