//! Copies between tensors and NumPy arrays.
#![allow(unsafe_code)]

use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use smallvec::smallvec;

use super::device::PyDevice;
use super::dtype;
use super::tensor::{self, Handle};
use crate::dispatch;
use crate::dtype::{DType, Element};
use crate::engine::{self, Engine};
use crate::error::{Error, Result};
use crate::ops::copy::{Cast, Copy};
use crate::shape::Shape;
use crate::view::{Meta, View};

/// The same elements, row-major in a block of their own or already so.
fn contiguous(engine: &Engine, view: View) -> Result<View> {
    if view.meta.is_contiguous() {
        return Ok(view);
    }
    let made = engine.submit(engine.turn(), &Copy.into(), smallvec![view])?;
    Ok(made[0].clone())
}

/// NumPy has no bfloat16 of its own: float32 holds every value of it.
fn representable(engine: &Engine, view: View) -> Result<View> {
    if view.meta.dtype != DType::BFloat16 {
        return Ok(view);
    }
    let made =
        engine.submit(engine.turn(), &Cast { dtype: DType::Float32 }.into(), smallvec![view])?;
    Ok(made[0].clone())
}

/// A host address that may cross to another thread while Python's lock is released.
struct Address(*mut u8);
// SAFETY: whoever sends it keeps the memory alive meanwhile.
unsafe impl Send for Address {}

impl Address {
    fn get(&self) -> *mut u8 {
        self.0
    }
}

fn data(array: &Bound<'_, PyUntypedArray>) -> Address {
    // SAFETY: the array object is alive.
    Address(unsafe { (*array.as_array_ptr()).fields.data.cast() })
}

/// Fills a new array from a view; runs without Python's lock.
fn read(engine: &Engine, view: View, to: Address) -> Result<()> {
    let view = contiguous(engine, representable(engine, view)?)?;
    let _turn = engine.turn();
    let from = view.address(false)?;
    // SAFETY: both hold the view's elements row-major, and the array is new.
    unsafe { from.copy_to_nonoverlapping(to.get(), view.meta.bytes()) };
    Ok(())
}

/// Fills a view from a row-major array; runs without Python's lock.
fn write(engine: &Engine, view: &View, from: Address) -> Result<()> {
    let staged = match view.meta.is_contiguous() {
        true => view.clone(),
        false => View::new(engine.device(), Meta::new(view.meta.dtype, view.meta.shape.clone())),
    };
    let turn = engine.turn();
    let to = staged.address(true)?;
    // SAFETY: both hold the view's elements row-major; the array is not this block's memory,
    // since blocks lend theirs only through DLPack, and a copy of itself changes nothing.
    unsafe { from.get().copy_to(to, staged.meta.bytes()) };
    staged.block.touch();
    match staged.is_same(view) {
        true => Ok(()),
        false => {
            engine.submit_into(turn, &Copy.into(), smallvec![staged], std::slice::from_ref(view))
        }
    }
}

#[pymethods]
impl Handle {
    /// A fresh writable row-major array (bfloat16 comes as float32).
    fn to_numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyUntypedArray>> {
        let view = self.view()?;
        let engine = engine::of(view.block.device())?;
        let name = match view.meta.dtype {
            DType::BFloat16 => "float32",
            other => other.name(),
        };
        let shape: Vec<usize> = view.meta.shape.to_vec();
        let array = py.import("numpy")?.call_method1("empty", (shape, name))?;
        let array = array.cast_into::<PyUntypedArray>()?;
        let to = data(&array);
        py.detach(|| read(engine, view, to))?;
        Ok(array)
    }

    /// Writes an array of the same shape and dtype into the tensor.
    fn copy_from_numpy(&self, array: &Bound<'_, PyAny>) -> PyResult<()> {
        let view = self.view()?;
        let engine = engine::of(view.block.device())?;
        let array = row_major(array)?;
        let (dtype, shape) = (dtype::parse(array.dtype().as_any())?, shape_of(&array));
        let (meta, op) = (&*view.meta, "copy_from_numpy");
        if dtype != meta.dtype {
            return Err(Error::dtype(op, [dtype], meta.dtype.name()).into());
        }
        if shape != meta.shape {
            return Err(Error::shape(op, [&shape], meta.shape.to_string()).into());
        }
        let from = data(&array);
        Ok(array.py().detach(|| write(engine, &view, from))?)
    }

    /// The only element as a Python number.
    fn item<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let view = self.view()?;
        if view.meta.numel() != 1 {
            return Err(Error::shape("item", [&view.meta.shape], "one element").into());
        }
        let engine = engine::of(view.block.device())?;
        let bits = py.detach(|| bits(engine, &view))?;
        dispatch!(view.meta.dtype, T => {
            // SAFETY: every bit pattern is a valid element, and none is larger than 8 bytes.
            let value = unsafe { bits.as_ptr().cast::<T>().read_unaligned() };
            number(py, view.meta.dtype, value)
        })
    }
}

/// The bytes of a view's only element.
fn bits(engine: &Engine, view: &View) -> Result<[u8; 8]> {
    let _turn = engine.turn();
    let (from, mut bits) = (view.address(false)?, [0; 8]);
    // SAFETY: the place holds one element, of at most 8 bytes.
    unsafe { from.copy_to_nonoverlapping(bits.as_mut_ptr(), view.meta.dtype.size()) };
    Ok(bits)
}

fn number<T: Element>(py: Python<'_>, dtype: DType, value: T) -> PyResult<Bound<'_, PyAny>> {
    match dtype {
        DType::Bool => (value.to_i64() != 0).into_bound_py_any(py),
        dtype if dtype.is_float() => value.to_f64().into_bound_py_any(py),
        _ => value.to_i64().into_bound_py_any(py),
    }
}

fn row_major<'py>(array: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyUntypedArray>> {
    if !array.is_instance_of::<PyUntypedArray>() {
        let message = format!("copy_from_numpy: got {}, want a NumPy array", array.get_type());
        return Err(pyo3::exceptions::PyTypeError::new_err(message));
    }
    let numpy = array.py().import("numpy")?;
    let options = PyDict::new(array.py());
    // Other byte orders become the machine's own.
    options.set_item("dtype", array.getattr("dtype")?.call_method1("newbyteorder", ("=",))?)?;
    options.set_item("order", "C")?;
    Ok(numpy.call_method("asarray", (array,), Some(&options))?.cast_into()?)
}

fn shape_of(array: &Bound<'_, PyUntypedArray>) -> Shape {
    array.shape().into()
}

/// A new tensor with the elements of an array; the dtype is kept.
#[pyfunction]
fn from_numpy<'py>(array: &Bound<'py, PyAny>, device: &PyDevice) -> PyResult<Bound<'py, Handle>> {
    let array = row_major(array)?;
    let (dtype, shape) = (dtype::parse(array.dtype().as_any())?, shape_of(&array));
    shape.checked_numel("from_numpy")?;
    let meta = Meta::new(dtype, shape);
    let view = View::new(&device.0, meta);
    let (engine, from) = (engine::of(&device.0)?, data(&array));
    array.py().detach(|| write(engine, &view, from))?;
    tensor::make(array.py(), view)
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(from_numpy, module)?)
}
