//! Views of a tensor: they share its block.

use pyo3::prelude::*;

use super::args::Extents;
use super::tensor::{self, Handle};
use crate::error::{Error, Result};
use crate::view::SliceRange;

fn range((start, count, step): (i64, i64, i64)) -> Result<SliceRange> {
    let got = || format!("start {start}, count {count}");
    let want = "no negative start or count";
    crate::ensure!(start >= 0 && count >= 0, Error::value("slice", got(), want));
    Ok(SliceRange { start: start as usize, count: count as usize, step: step as isize })
}

#[pymethods]
impl Handle {
    /// The same elements, row-major, in another shape; None where that requires a copy.
    fn view_reshape<'py>(
        &self,
        py: Python<'py>,
        shape: Extents,
    ) -> PyResult<Option<Bound<'py, Handle>>> {
        let view = self.view()?.reshape(&shape.0)?;
        view.map(|v| tensor::make(py, v)).transpose()
    }

    /// Dimension i of the result is dimension `axes[i]` of the tensor.
    fn view_permute<'py>(&self, py: Python<'py>, axes: Vec<i64>) -> PyResult<Bound<'py, Handle>> {
        tensor::make(py, self.view()?.permute(&axes)?)
    }

    /// `count` elements from `start`, `step` apart, along each axis; one triple per axis.
    fn view_slice<'py>(
        &self,
        py: Python<'py>,
        ranges: Vec<(i64, i64, i64)>,
    ) -> PyResult<Bound<'py, Handle>> {
        let ranges = ranges.into_iter().map(range).collect::<Result<Vec<_>>>()?;
        tensor::make(py, self.view()?.slice(&ranges)?)
    }

    /// Repeats dimensions of extent 1 and adds leading dimensions, without a copy.
    fn view_expand<'py>(&self, py: Python<'py>, shape: Extents) -> PyResult<Bound<'py, Handle>> {
        tensor::make(py, self.view()?.expand(&shape.0)?)
    }
}
