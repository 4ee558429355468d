//! Views of a tensor: they share its block.

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyIndexError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PySlice, PyTuple};

use super::args::Extents;
use super::handler;
use super::tensor::{self, Handle};
use crate::error::{Error, Result};
use crate::shape::Shape;
use crate::view::{SliceRange, View};

fn range((start, count, step): (i64, i64, i64)) -> Result<SliceRange> {
    let got = || format!("start {start}, count {count}");
    let want = "no negative start or count";
    crate::ensure!(start >= 0 && count >= 0, Error::value("slice", got(), want));
    Ok(SliceRange { start: start as usize, count: count as usize, step: step as isize })
}

/// The elements of one axis that a key selects, and whether the axis is kept; `None` for anything
/// but a plain int, and a slice of plain ints.
fn basic(
    key: &Bound<'_, PyAny>,
    axis: usize,
    extent: usize,
) -> PyResult<Option<(SliceRange, bool)>> {
    if key.is_exact_instance_of::<PyInt>() {
        let given: Option<isize> = key.extract().ok();
        let n = extent as isize;
        let Some(i) = given.filter(|i| (-n..n).contains(i)) else {
            let text = format!("index: {key} is out of range for axis {axis} of size {extent}");
            return Err(PyIndexError::new_err(text));
        };
        let start = (if i < 0 { i + n } else { i }) as usize;
        return Ok(Some((SliceRange { start, count: 1, step: 1 }, false)));
    }
    let Ok(slice) = key.cast_exact::<PySlice>() else { return Ok(None) };
    let py = key.py();
    for name in [intern!(py, "start"), intern!(py, "stop"), intern!(py, "step")] {
        let bound = slice.getattr(name)?;
        if !bound.is_none() && !bound.is_exact_instance_of::<PyInt>() {
            return Ok(None);
        }
    }
    let found = slice.indices(extent as isize)?;
    let count = found.slicelength;
    let start = if count == 0 { 0 } else { found.start as usize };
    // A step that is never taken may be any number.
    Ok(Some((SliceRange { start, count, step: if count > 1 { found.step } else { 1 } }, true)))
}

/// The view that `make` makes of a tensor, or what the thread's handler makes of the method `name`
/// and its `argument`.
fn view_of<'py>(
    tensor: &Bound<'py, Handle>,
    name: &'static str,
    argument: &Bound<'py, PyAny>,
    make: impl FnOnce(View) -> PyResult<Option<View>>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = tensor.py();
    if handler::is_set() {
        let what = || (name, argument).into_bound_py_any(py);
        return handler::handled(&PyTuple::new(py, [tensor])?, what);
    }
    let made = make(tensor.get().place()?)?;
    made.map(|view| Ok(tensor::make(py, view)?.into_any())).transpose()
}

/// The part of a view at a key of plain ints and slices of them; None for any other key.
fn part(view: &View, key: &Bound<'_, PyAny>) -> PyResult<Option<View>> {
    let shape = &view.meta.shape;
    let keys = key.cast_exact::<PyTuple>().ok();
    let count = keys.map_or(1, |keys| keys.len());
    if count > shape.rank() {
        return Ok(None);
    }
    let (mut ranges, mut kept) = (Vec::with_capacity(shape.rank()), Vec::new());
    for (axis, &extent) in shape.iter().enumerate() {
        let whole = (SliceRange { start: 0, count: extent, step: 1 }, true);
        let found = match keys {
            _ if axis >= count => Some(whole),
            Some(keys) => basic(&*keys.get_borrowed_item(axis)?, axis, extent)?,
            None => basic(key, axis, extent)?,
        };
        let Some((range, is_kept)) = found else { return Ok(None) };
        ranges.push(range);
        kept.extend(is_kept.then_some(range.count));
    }
    Ok(view.slice(&ranges)?.reshape(&kept.into_iter().collect::<Shape>())?)
}

#[pymethods]
impl Handle {
    /// The elements at a key of plain ints, and slices of them; None for any other key.
    fn view_index<'py>(
        slf: &Bound<'py, Self>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        view_of(slf, "view_index", key, |view| part(&view, key))
    }

    /// The same elements, row-major, in another shape; None where that requires a copy.
    fn view_reshape<'py>(
        slf: &Bound<'py, Self>,
        shape: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let reshaped = |view: View| Ok(view.reshape(&shape.extract::<Extents>()?.0)?);
        view_of(slf, "view_reshape", shape, reshaped)
    }

    /// Dimension i of the result is dimension `axes[i]` of the tensor.
    fn view_permute<'py>(
        slf: &Bound<'py, Self>,
        axes: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let permuted = |view: View| Ok(Some(view.permute(&axes.extract::<Vec<i64>>()?)?));
        view_of(slf, "view_permute", axes, permuted)
    }

    /// `count` elements from `start`, `step` apart, along each axis; one triple per axis.
    fn view_slice<'py>(
        slf: &Bound<'py, Self>,
        ranges: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let sliced = |view: View| {
            let triples = ranges.extract::<Vec<(i64, i64, i64)>>()?;
            let ranges = triples.into_iter().map(range).collect::<Result<Vec<_>>>()?;
            Ok(Some(view.slice(&ranges)?))
        };
        view_of(slf, "view_slice", ranges, sliced)
    }

    /// Repeats dimensions of extent 1 and adds leading dimensions, without a copy.
    fn view_expand<'py>(
        slf: &Bound<'py, Self>,
        shape: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let expanded = |view: View| Ok(Some(view.expand(&shape.extract::<Extents>()?.0)?));
        view_of(slf, "view_expand", shape, expanded)
    }
}
