//! Host operations: user code in NumPy.

use std::any::Any;
use std::cell::Cell;

use ::numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::pyclass::{PyTraverseError, PyVisit};
use pyo3::types::PyTuple;

use super::args::Extents;
use super::dtype::{self, PyDType};
use super::exit;
use super::numpy;
use super::op::Op;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::host::{HostFn, HostInput, HostOutput};
use crate::ops::{Meta, Metas};
use crate::shape::Shape;

/// Shape and dtype of an input, as a host operation's `infer` sees it.
#[pyclass(name = "Meta", module = "singa_rs._core", frozen)]
pub(super) struct PyMeta {
    shape: Shape,
    dtype: DType,
}

#[pymethods]
impl PyMeta {
    /// Extents, a tuple.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.shape.iter())
    }

    /// Element type.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDType>> {
        dtype::object(py, self.dtype)
    }

    fn __repr__(&self) -> String {
        format!("Meta(shape={}, dtype={})", self.shape, self.dtype)
    }
}

thread_local! {
    /// The exception raised by this thread's last host operation, until `raised` takes it. Kernels
    /// can only return an [`Error`], which is plain text; the user needs the exception itself.
    static RAISED: Cell<Option<PyErr>> = const { Cell::new(None) };
}

/// The exception behind an [`Error::Host`].
pub(super) fn raised(error: &Error) -> Option<PyErr> {
    matches!(error, Error::Host { .. }).then(|| RAISED.take()).flatten()
}

fn keep(exception: PyErr) -> Error {
    let message = exception.to_string();
    RAISED.set(Some(exception));
    Error::Host { op: "host".into(), message }
}

/// The result of calling user code.
fn attached<T>(call: impl FnOnce(Python<'_>) -> PyResult<T>) -> Result<T> {
    let message = || "the interpreter ends".into();
    let ended = || Error::Host { op: "host".into(), message: message() };
    exit::attach(call).ok_or_else(ended)?.map_err(keep)
}

/// The user's `infer(*metas)` and `forward(*arrays)`.
pub(super) struct PythonFn {
    infer: Py<PyAny>,
    forward: Py<PyAny>,
    /// Equal for equivalent functions.
    key: Option<Py<PyAny>>,
}

impl PythonFn {
    /// Reports the objects it refers to, for Python's cycle collector.
    pub(super) fn traverse(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.infer)?;
        visit.call(&self.key)?;
        visit.call(&self.forward)
    }
}

impl HostFn for PythonFn {
    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        attached(|py| self.infer_in(py, inputs))
    }

    fn call(&self, inputs: &[HostInput], outputs: &mut [HostOutput]) -> Result<()> {
        attached(|py| self.call_in(py, inputs, outputs))
    }

    fn is_same(&self, other: &dyn Any) -> bool {
        let other = other.downcast_ref::<PythonFn>();
        let keys = self.key.as_ref().zip(other.and_then(|other| other.key.as_ref()));
        keys.is_some_and(|(a, b)| {
            exit::attach(|py| a.bind(py).eq(b).unwrap_or(false)).unwrap_or(false)
        })
    }
}

impl PythonFn {
    fn infer_in(&self, py: Python<'_>, inputs: &[&Meta]) -> PyResult<Metas> {
        let metas = inputs.iter().map(|m| PyMeta { shape: m.shape.clone(), dtype: m.dtype });
        let answer = self.infer.bind(py).call1(PyTuple::new(py, metas)?)?;
        let answers = if is_pair(&answer)? { vec![answer] } else { several(&answer)? };
        answers.iter().map(meta).collect()
    }

    fn call_in(
        &self,
        py: Python<'_>,
        inputs: &[HostInput],
        outputs: &mut [HostOutput],
    ) -> PyResult<()> {
        let arrays = inputs.iter().map(|input| array(py, input)).collect::<PyResult<Vec<_>>>()?;
        let answers = several(&self.forward.bind(py).call1(PyTuple::new(py, arrays)?)?)?;
        if answers.len() != outputs.len() {
            let (got, want) = (answers.len(), outputs.len().to_string());
            return Err(Error::arity("host", got, want).into());
        }
        outputs.iter_mut().zip(&answers).try_for_each(|(to, from)| fill(to, from))
    }
}

/// A single result, or the items of a tuple or list of them.
fn several<'py>(answer: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    match is_list(answer) {
        true => answer.try_iter()?.collect(),
        false => Ok(vec![answer.clone()]),
    }
}

fn is_list(answer: &Bound<'_, PyAny>) -> bool {
    answer.is_instance_of::<PyTuple>() || answer.is_instance_of::<pyo3::types::PyList>()
}

/// Whether this is one result's (shape, dtype).
fn is_pair(answer: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(is_list(answer)
        && answer.len()? == 2
        && dtype::parse(&answer.get_item(1)?).is_ok()
        && answer.get_item(0)?.extract::<Vec<usize>>().is_ok())
}

/// From a pair (shape, dtype), or any object with these attributes.
fn meta(answer: &Bound<'_, PyAny>) -> PyResult<Meta> {
    let (shape, dtype) = match answer.is_instance_of::<PyTuple>() {
        true => (answer.get_item(0)?, answer.get_item(1)?),
        false => (answer.getattr("shape")?, answer.getattr("dtype")?),
    };
    let Extents(shape) = shape.extract()?;
    Ok(Meta::new(dtype::parse(&dtype)?, shape))
}

/// A NumPy array with a copy of an input's elements (bfloat16 becomes float32).
fn array<'py>(py: Python<'py>, input: &HostInput) -> PyResult<Bound<'py, PyAny>> {
    let numpy = py.import("numpy")?;
    let is_bfloat16 = input.dtype == DType::BFloat16;
    let name = if is_bfloat16 { "uint16" } else { input.dtype.name() };
    let made = numpy.call_method1("empty", (PyTuple::new(py, input.shape.iter())?, name))?;
    let mut made = made.cast_into::<PyUntypedArray>()?;
    numpy::bytes(&mut made).copy_from_slice(input.bytes);
    if !is_bfloat16 {
        return Ok(made.into_any());
    }
    numpy.call_method1("asarray", (widened(made.as_any())?,))
}

/// Widens to float32, whose upper half a bfloat16 is.
fn widened<'py>(bits: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let wide = bits.call_method1("astype", ("uint32",))?.call_method1("__lshift__", (16,))?;
    wide.call_method1("view", ("float32",))
}

/// Writes the result of the user's function, which must have the shape that `infer` returned.
fn fill(to: &mut HostOutput, from: &Bound<'_, PyAny>) -> PyResult<()> {
    let numbers = from.py().import("singa_rs.tensor.numbers")?;
    let array = numbers.call_method1("as_array", (from, "host"))?;
    let shape: Shape = array.getattr("shape")?.extract::<Vec<usize>>()?.into_iter().collect();
    if shape != *to.shape {
        return Err(
            Error::shape("host", [&shape], format!("{} as infer declared", to.shape)).into()
        );
    }
    let want = dtype::object(from.py(), to.dtype)?;
    let dtypes = from.py().import("singa_rs.tensor.dtypes")?;
    let array = dtypes.call_method1("to_storage", ("host", array, want))?;
    let bytes = match to.dtype {
        DType::BFloat16 => narrowed(&array)?,
        _ => array,
    };
    let rows = from.py().import("numpy")?.call_method1("ascontiguousarray", (bytes,))?;
    to.bytes.copy_from_slice(numpy::bytes(&mut rows.cast_into()?));
    Ok(())
}

/// The bits of the nearest bfloat16 to each element, as uint16.
fn narrowed<'py>(array: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let numpy = array.py().import("numpy")?;
    let floats = numpy.call_method1("ascontiguousarray", (array, "float32"))?;
    let mut floats = floats.cast_into::<PyUntypedArray>()?;
    let mut bits = numpy.call_method1("empty", (floats.len(), "uint16"))?.cast_into()?;
    let (from, _) = numpy::bytes(&mut floats).as_chunks::<4>();
    for (to, from) in numpy::bytes(&mut bits).as_chunks_mut::<2>().0.iter_mut().zip(from) {
        *to = half::bf16::from_f32(f32::from_ne_bytes(*from)).to_ne_bytes();
    }
    Ok(bits.into_any())
}

/// An operation that runs `forward(*arrays)` on NumPy copies of its inputs. `infer(*metas)` returns
/// the shape and dtype of each result, as pairs or as objects with these attributes. Operations
/// with the same name and equal keys count as the same in recordings; without a key no two do.
#[pyfunction(name = "HostOp")]
#[pyo3(signature = (name, infer, forward, key=None))]
fn host_op(name: &str, infer: Py<PyAny>, forward: Py<PyAny>, key: Option<Py<PyAny>>) -> Op {
    Op::host(name, PythonFn { infer, forward, key })
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::python::add_class::<PyMeta>(module)?;
    module.add_function(wrap_pyfunction!(host_op, module)?)
}
