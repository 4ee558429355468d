//! Host operations (provisional until the family lands).
use pyo3::prelude::*;

pub(super) fn raised(_py: Python<'_>) -> Option<PyErr> {
    None
}

pub(super) fn register(_module: &Bound<'_, PyModule>) -> PyResult<()> {
    Ok(())
}
