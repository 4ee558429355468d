//! Views of a tensor: they share its block.

use pyo3::prelude::*;

use super::tensor::{self, Handle};
use crate::view::SliceRange;

#[pymethods]
impl Handle {
    /// The same elements, row-major, in another shape; None where that needs a copy.
    fn view_reshape<'py>(
        &self,
        py: Python<'py>,
        shape: Vec<usize>,
    ) -> PyResult<Option<Bound<'py, Handle>>> {
        let view = self.view()?.reshape(&shape.into_iter().collect())?;
        view.map(|v| tensor::make(py, v)).transpose()
    }

    /// Dimension i of the result is dimension `axes[i]` of the tensor.
    fn view_permute<'py>(&self, py: Python<'py>, axes: Vec<i64>) -> PyResult<Bound<'py, Handle>> {
        tensor::make(py, self.view()?.permute(&axes)?)
    }

    /// Along each axis `count` elements from `start`, `step` apart; one triple an axis.
    fn view_slice<'py>(
        &self,
        py: Python<'py>,
        ranges: Vec<(usize, usize, isize)>,
    ) -> PyResult<Bound<'py, Handle>> {
        let range = |(start, count, step)| SliceRange { start, count, step };
        let ranges: Vec<_> = ranges.into_iter().map(range).collect();
        tensor::make(py, self.view()?.slice(&ranges)?)
    }

    /// Extents of 1 repeated, and dimensions added in front, without a copy.
    fn view_expand<'py>(&self, py: Python<'py>, shape: Vec<usize>) -> PyResult<Bound<'py, Handle>> {
        tensor::make(py, self.view()?.expand(&shape.into_iter().collect())?)
    }
}
