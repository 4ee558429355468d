//! Element types as Python objects.

use numpy::npyffi::NPY_TYPES;
use numpy::{PyArrayDescr, PyArrayDescrMethods};
use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyInt, PyString, PyType};

use super::error::DTypeError;
use crate::dtype::DType;

/// An element type. Equal to the integer that SINGA uses for it, where SINGA has it.
#[pyclass(name = "DType", module = "singa_rs._core", frozen)]
pub(super) struct PyDType(pub DType);

/// SINGA's numbers, which occur in the attributes of its checkpoints.
const SINGA: [(i64, DType); 3] = [(0, DType::Float32), (1, DType::Float16), (2, DType::Int32)];

#[pymethods]
impl PyDType {
    /// NumPy's name of the type.
    #[getter]
    fn name(&self) -> &'static str {
        self.0.name()
    }

    /// Bytes of one element.
    #[getter]
    fn itemsize(&self) -> usize {
        self.0.size()
    }

    /// Whether it is float16, bfloat16, float32 or float64.
    #[getter]
    fn is_float(&self) -> bool {
        self.0.is_float()
    }

    /// Whether it is an integer type (bool is not).
    #[getter]
    fn is_int(&self) -> bool {
        self.0.is_int()
    }

    /// Whether elements of this type are kept, moved and converted, but not computed with.
    #[getter]
    fn is_storage(&self) -> bool {
        self.0.is_storage()
    }

    fn __repr__(&self) -> String {
        format!("singa_rs.{}", self.0.name())
    }

    fn __hash__(&self) -> isize {
        // Equal to the hash of SINGA's integer, if there is one, as `==` requires.
        SINGA.iter().find(|(_, d)| *d == self.0).map_or(100 + self.0 as isize, |(n, _)| *n as isize)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        match other.cast::<PyDType>() {
            Ok(other) => other.get().0 == self.0,
            Err(_) => other.is_instance_of::<PyInt>() && parse(other).is_ok_and(|d| d == self.0),
        }
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (&'static str,))> {
        Ok((py.import("singa_rs._core")?.getattr("dtype")?, (self.0.name(),)))
    }
}

/// The element type that a Python object names: a DType, a name, one of SINGA's integers, a
/// NumPy dtype or scalar type, or one of Python's `float`, `int`, `bool`.
pub(super) fn parse(object: &Bound<'_, PyAny>) -> PyResult<DType> {
    if let Ok(dtype) = object.cast::<PyDType>() {
        return Ok(dtype.get().0);
    }
    // True is an integer to Python, but does not name a type.
    if object.is_instance_of::<PyInt>() && !object.is_instance_of::<PyBool>() {
        let number = object.extract::<i64>().ok();
        let found = SINGA.iter().find(|(n, _)| Some(*n) == number).map(|(_, d)| *d);
        return found.ok_or_else(|| unknown(object));
    }
    let name = name_of(object)?;
    by_name(&name).ok_or_else(|| unknown(object))
}

fn by_name(name: &str) -> Option<DType> {
    match name {
        "float" => Some(DType::Float32),
        "int" => Some(DType::Int32),
        "bool_" => Some(DType::Bool),
        _ => DType::ALL.into_iter().find(|d| d.name() == name),
    }
}

fn name_of(object: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(text) = object.cast::<PyString>() {
        return text.extract();
    }
    if object.is_instance_of::<PyType>() {
        return object.getattr("__name__")?.extract();
    }
    let is_missing = |error: &PyErr| error.is_instance_of::<PyAttributeError>(object.py());
    let name = object.getattr("name");
    // Any other error, such as an interrupt, is passed on to the caller.
    name.map_err(|error| if is_missing(&error) { unknown(object) } else { error })?.extract()
}

fn unknown(object: &Bound<'_, PyAny>) -> PyErr {
    let names: Vec<_> = DType::ALL.iter().map(|d| d.name()).collect();
    let got = super::args::text(object);
    DTypeError::new_err(format!("dtype: got {got}, want one of {}", names.join(", ")))
}

/// The element type of NumPy's own dtype of native byte order; None for any other dtype.
pub(super) fn of_numpy(dtype: &Bound<'_, PyArrayDescr>) -> Option<DType> {
    let is_own = dtype.num() < NPY_TYPES::NPY_NTYPES_LEGACY as i32;
    if !is_own || dtype.is_native_byteorder() == Some(false) {
        return None;
    }
    DType::ALL.into_iter().find(|d| kind(*d) == Some(dtype.kind()) && d.size() == dtype.itemsize())
}

/// NumPy's letter for a kind of numbers; None for a type that NumPy lacks.
fn kind(dtype: DType) -> Option<u8> {
    Some(match dtype {
        DType::BFloat16 => return None,
        DType::Bool => b'b',
        float if float.is_float() => b'f',
        integer if integer.name().starts_with('u') => b'u',
        _ => b'i',
    })
}

/// One of NumPy's dtypes per type that it has.
static NUMPY: PyOnceLock<Vec<Option<Py<PyArrayDescr>>>> = PyOnceLock::new();

/// NumPy's dtype, for a type that NumPy has.
pub(super) fn to_numpy(py: Python<'_>, dtype: DType) -> PyResult<Bound<'_, PyArrayDescr>> {
    let make =
        |d: DType| kind(d).map(|_| PyArrayDescr::new(py, d.name()).map(Bound::unbind)).transpose();
    let all =
        NUMPY.get_or_try_init(py, || DType::ALL.into_iter().map(make).collect::<PyResult<_>>())?;
    Ok(all[dtype as usize].as_ref().expect("NumPy has it").bind(py).clone())
}

/// The element type that `object` names (see `parse`).
#[pyfunction]
fn dtype<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDType>> {
    self::object(object.py(), parse(object)?)
}

/// One object per type, so that Python code can compare them by identity.
static OBJECTS: PyOnceLock<Vec<Py<PyDType>>> = PyOnceLock::new();

/// The object of an element type.
pub(super) fn object(py: Python<'_>, dtype: DType) -> PyResult<Bound<'_, PyDType>> {
    let make = || DType::ALL.into_iter().map(|d| Py::new(py, PyDType(d))).collect();
    let objects = OBJECTS.get_or_try_init(py, make)?;
    Ok(objects[dtype as usize].bind(py).clone())
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::python::add_class::<PyDType>(module)?;
    for dtype in DType::ALL {
        let name = if dtype == DType::Bool { "bool_" } else { dtype.name() };
        module.add(name, object(module.py(), dtype)?)?;
    }
    module.add_function(wrap_pyfunction!(dtype, module)?)
}
