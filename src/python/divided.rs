//! Tensors whose elements are divided among processes: what stands for them where they are used.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use pyo3::intern;
use pyo3::prelude::*;

use super::error::{DividedError, InternalError};
use super::tensor::{self, Handle};
use super::{exit, handler};
use crate::block::DividedPlace;
use crate::error::Error;
use crate::ops::Kind;
use crate::view::View;

/// A tensor like this one without memory, the elements of which are divided: this process has those
/// in `share`, and `unit.whole(index)` is a tensor of all of them. Whatever has pointed to the
/// tensor's memory finds the divided elements from here on.
#[pyfunction]
fn divide<'py>(
    tensor: &Bound<'py, Handle>,
    share: &Handle,
    unit: Py<PyAny>,
    index: usize,
) -> PyResult<Bound<'py, Handle>> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let view = tensor.get().place_in("divide")?;
    if !is_alone(&view) {
        let got = format!("a tensor of shape {} in other memory", view.meta.shape);
        return Err(Error::value("divide", got, "all of a block, row-major").into());
    }
    let share = share.place_in("divide")?.block;
    let (unit, number) = (Arc::new(unit), NEXT.fetch_add(1, Relaxed));
    let block = view.block.divide(&DividedPlace { share, unit, number, index });
    tensor::make(tensor.py(), View { block, ..view })
}

fn is_alone(view: &View) -> bool {
    view.offset == 0 && view.covers_block() && view.meta.is_contiguous()
}

/// The object that `divide` was given.
fn unit<'py>(py: Python<'py>, place: &DividedPlace) -> PyResult<Bound<'py, PyAny>> {
    let object = place.unit.downcast_ref::<Py<PyAny>>();
    let other = || InternalError::new_err("divide: a unit that is no Python object");
    Ok(object.ok_or_else(other)?.bind(py).clone())
}

/// The view in memory that has all elements.
#[cold]
pub(super) fn gathered(view: View, op: &str) -> PyResult<View> {
    let Some(place) = view.block.divided().map(|divided| divided.place()) else { return Ok(view) };
    let ask = |py: Python<'_>| {
        let made = unit(py, &place)?.call_method1(intern!(py, "whole"), (place.index,))?;
        made.cast::<Handle>()?.get().place_in(op)
    };
    let ended = || Err(InternalError::new_err(format!("{op}: the interpreter is shutting down")));
    let whole = handler::aside(|| exit::attach(ask)).unwrap_or_else(ended)?;
    if !is_alone(&whole) || whole.block.bytes() != view.block.bytes() {
        let got = format!("{op}: {} bytes were gathered of {:?}", whole.block.bytes(), view.block);
        return Err(InternalError::new_err(got));
    }
    Ok(View { block: whole.block, ..view })
}

/// The same for input `i` of an operation, which must not update it.
#[cold]
pub(super) fn input(view: View, kind: &Kind, i: usize) -> PyResult<View> {
    let family = kind.family();
    if family.effects().state.iter().any(|&(input, _)| input == i) {
        return Err(refusal(family.name()));
    }
    gathered(view, family.name())
}

fn refusal(op: &str) -> PyErr {
    DividedError::new_err(format!(
        "{op}: writes into a parameter that is divided among ranks (shard=3), into which only whole \
         values can be copied: p.copy_from(value)"
    ))
}

impl Handle {
    /// The view of a tensor that operation `op` writes.
    pub(super) fn target_in(&self, op: &str) -> PyResult<View> {
        let view = self.place_in(op)?;
        if view.block.divided().is_some() { Err(refusal(op)) } else { Ok(view) }
    }
}

#[pymethods]
impl Handle {
    /// The unit and the index of a tensor whose elements are divided among processes; None for any
    /// other, also one without a value.
    #[getter(_divided)]
    fn divided<'py>(&self, py: Python<'py>) -> PyResult<Option<(Bound<'py, PyAny>, usize)>> {
        let place = self.ask(|view| view.block.divided().map(|divided| divided.place()));
        let place = place.ok().flatten();
        place.map(|place| Ok((unit(py, &place)?, place.index))).transpose()
    }

    /// Whether it has memory of its own: all of a block, row-major.
    #[getter(_is_alone)]
    fn is_alone(&self) -> PyResult<bool> {
        Ok(is_alone(&self.place()?))
    }
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(divide, module)?)
}
