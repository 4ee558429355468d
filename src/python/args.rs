//! Arguments that need checks beyond their type.

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt};

use crate::shape::Shape;

/// The extents of a shape: a sequence of integers, none negative.
pub(super) struct Extents(pub Shape);

impl<'py> FromPyObject<'_, 'py> for Extents {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(extents) = object.extract::<Vec<usize>>() {
            return Ok(Extents(extents.into_iter().collect()));
        }
        let message = format!("shape: got {}, want integers, none negative", text(&object));
        Err(match object.extract::<Vec<Bound<'_, PyInt>>>() {
            Ok(_) => PyValueError::new_err(message),
            Err(_) => PyTypeError::new_err(message),
        })
    }
}

/// A natural number, named `what` in errors.
pub(super) fn natural(what: &'static str, object: &Bound<'_, PyAny>) -> PyResult<u64> {
    let message = || format!("{what}: got {}, want an integer from 0 to 2^63 - 1", text(object));
    if object.is_instance_of::<PyBool>() {
        return Err(PyTypeError::new_err(message()));
    }
    match object.extract::<i64>() {
        Ok(number) => number.try_into().map_err(|_| PyValueError::new_err(message())),
        Err(error) if error.is_instance_of::<PyOverflowError>(object.py()) => {
            Err(PyValueError::new_err(message()))
        }
        Err(_) => Err(PyTypeError::new_err(message())),
    }
}

/// The object as Python prints it.
pub(super) fn text(object: &Bound<'_, PyAny>) -> String {
    object.repr().map_or_else(|_| "an object".into(), |r| r.to_string())
}
