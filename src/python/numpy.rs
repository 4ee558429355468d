//! Copies between tensors and NumPy arrays.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::ptr::NonNull;
use std::sync::Arc;

use numpy::npyffi::{NPY_ARRAY_ALIGNED, NPY_ARRAY_C_CONTIGUOUS, PY_ARRAY_API, npy_intp};
use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use smallvec::smallvec;

use super::device::PyDevice;
use super::dtype;
use super::exit;
use super::handler;
use super::op;
use super::tensor::{self, Handle};
use crate::block::Block;
use crate::device::Device;
use crate::dispatch;
use crate::dtype::{DType, Element};
use crate::engine::record::{self, Mode};
use crate::engine::{self, Turn};
use crate::error::{Error, Result};
use crate::kernels;
use crate::ops::copy::{Cast, Copy};
use crate::shape::Shape;
use crate::view::{Meta, View};

/// The address of an array's first element.
fn first(array: &Bound<'_, PyUntypedArray>) -> NonNull<u8> {
    // SAFETY: the array object is alive.
    let data = unsafe { (*array.as_array_ptr()).fields.data.cast() };
    NonNull::new(data).unwrap_or(NonNull::dangling())
}

/// A row-major tensor on an array's memory; it must not outlive the array.
fn lent(array: &Bound<'_, PyUntypedArray>, dtype: DType, shape: Shape) -> View {
    let meta = Meta::new(dtype, shape);
    let block = Block::foreign(kernels::host(), meta.bytes(), first(array), Box::new(()));
    View { block, meta: Arc::new(meta), offset: 0 }
}

/// A new row-major array, whose elements are not written yet.
fn empty<'py>(
    py: Python<'py>,
    dtype: DType,
    shape: &Shape,
) -> PyResult<Bound<'py, PyUntypedArray>> {
    let mut extents: Vec<npy_intp> = shape.iter().map(|&n| n as npy_intp).collect();
    let (rank, dtype) = (extents.len() as c_int, dtype::to_numpy(py, dtype)?.into_dtype_ptr());
    // SAFETY: there are `rank` extents; the function takes over the reference to the dtype, and
    // returns a new array or null with an exception.
    unsafe {
        let made = PY_ARRAY_API.PyArray_Empty(py, rank, extents.as_mut_ptr(), dtype, 0);
        Ok(Bound::from_owned_ptr_or_err(py, made)?.cast_into_unchecked())
    }
}

/// The bytes of a row-major array that nothing else accesses in the meantime.
pub(super) fn bytes<'a>(array: &'a mut Bound<'_, PyUntypedArray>) -> &'a mut [u8] {
    let bytes = array.len() * array.dtype().itemsize();
    // SAFETY: the array object lives as long as the borrow, and has this many bytes.
    unsafe { std::slice::from_raw_parts_mut(first(array).as_ptr(), bytes) }
}

#[pymethods]
impl Handle {
    /// A new writable row-major array (bfloat16 becomes float32).
    fn to_numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyUntypedArray>> {
        let view = self.view()?;
        record::check_read("to_numpy", &view)?;
        // NumPy has no bfloat16; float32 represents all its values.
        let (dtype, kind) = match view.meta.dtype {
            DType::BFloat16 => (DType::Float32, Cast { dtype: DType::Float32 }.into()),
            other => (other, Copy.into()),
        };
        let shape = view.meta.shape.clone();
        let array = empty(py, dtype, &shape)?;
        op::run_into(py, &kind, smallvec![view], &[lent(&array, dtype, shape)])?;
        Ok(array)
    }

    /// Writes an array of the same shape and dtype into the tensor.
    fn copy_from_numpy(&self, array: &Bound<'_, PyAny>) -> PyResult<()> {
        let name = "copy_from_numpy";
        let view = self.target_in(name)?;
        let (array, from) = source(name, array)?;
        let (got, want) = (&*from.meta, &*view.meta);
        if got.dtype != want.dtype {
            return Err(Error::dtype(name, [got.dtype], want.dtype.name()).into());
        }
        if got.shape != want.shape {
            return Err(Error::shape(name, [&got.shape], want.shape.to_string()).into());
        }
        let from = baked(&array, from, view.block.device())?;
        op::run_into(array.py(), &Copy.into(), smallvec![from], &[view])
    }

    /// The only element as a Python number.
    fn item<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let view = self.view()?;
        if view.meta.numel() != 1 {
            return Err(Error::shape("item", [&view.meta.shape], "one element").into());
        }
        record::check_read("item", &view)?;
        let engine = engine::of(view.block.device())?;
        let bits = match engine.try_turn() {
            Some(turn) => bits(&turn, &view),
            None => exit::detach(py, || bits(&engine.turn(), &view)),
        }?;
        dispatch!(view.meta.dtype, T => {
            // SAFETY: every bit pattern is a valid element, and none is larger than 8 bytes.
            let value = unsafe { bits.as_ptr().cast::<T>().read_unaligned() };
            number(py, view.meta.dtype, value)
        })
    }
}

/// The bytes of a view's only element.
fn bits(_turn: &Turn, view: &View) -> Result<[u8; 8]> {
    let (mut bits, size) = ([0; 8], view.meta.dtype.size());
    view.block.read_at(view.offset * size, &mut bits[..size])?;
    Ok(bits)
}

fn number<T: Element>(py: Python<'_>, dtype: DType, value: T) -> PyResult<Bound<'_, PyAny>> {
    match dtype {
        DType::Bool => (value.to_i64() != 0).into_bound_py_any(py),
        dtype if dtype.is_float() => value.to_f64().into_bound_py_any(py),
        _ => value.to_i128().into_bound_py_any(py),
    }
}

/// A row-major, aligned array in native byte order, converted from `array` if necessary, and its
/// tensor.
fn source<'py>(
    name: &'static str,
    array: &Bound<'py, PyAny>,
) -> PyResult<(Bound<'py, PyUntypedArray>, View)> {
    exit::keep_thread();
    let Ok(given) = array.cast::<PyUntypedArray>() else {
        let message = format!("{name}: got {}, want a NumPy array", array.get_type());
        return Err(PyTypeError::new_err(message));
    };
    let (array, dtype) = match dtype::of_numpy(&given.dtype()).filter(|_| is_ready(given)) {
        Some(dtype) => (given.clone(), dtype),
        None => required(array)?,
    };
    let shape: Shape = array.shape().into();
    shape.checked_numel(name)?;
    let view = lent(&array, dtype, shape);
    Ok((array, view))
}

/// Whether an array is row-major and aligned.
fn is_ready(array: &Bound<'_, PyUntypedArray>) -> bool {
    // SAFETY: the array object is alive.
    let flags = unsafe { (*array.as_array_ptr()).fields.flags };
    let wanted = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED;
    flags & wanted == wanted
}

/// A row-major, aligned array in native byte order with the elements of another one.
fn required<'py>(array: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyUntypedArray>, DType)> {
    let native = array.getattr("dtype")?.call_method1("newbyteorder", ("=",))?;
    let dtype = dtype::parse(&native)?;
    let options = PyDict::new(array.py());
    options.set_item("dtype", native)?;
    options.set_item("requirements", ("C", "A"))?;
    let numpy = array.py().import("numpy")?;
    let array: Bound<'_, PyUntypedArray> =
        numpy.call_method("require", (array,), Some(&options))?.cast_into()?;
    Ok((array, dtype))
}

/// The tensor of an array; while this thread records, a copy on `device` that the recording owns.
fn baked(array: &Bound<'_, PyUntypedArray>, from: View, device: &Device) -> PyResult<View> {
    if record::mode() != Mode::Record {
        return Ok(from);
    }
    // SAFETY: the array is row-major, and alive.
    let bytes = unsafe { std::slice::from_raw_parts(first(array).as_ptr(), from.meta.bytes()) };
    let engine = engine::of(device)?;
    Ok(exit::detach(array.py(), || engine.bake(&engine.turn(), from, bytes))?)
}

/// A new tensor with the elements of an array; the dtype is kept. A thread's handler is asked for it
/// as for a view of nothing, with the array and the device as its argument.
#[pyfunction]
fn from_numpy<'py>(
    array: &Bound<'py, PyAny>,
    device: &Bound<'py, PyDevice>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = array.py();
    let what = || ("from_numpy", (array, device)).into_bound_py_any(py);
    if let Some(made) = handler::handled(&PyTuple::empty(py), what)? {
        return Ok(made);
    }
    let (array, from) = source("from_numpy", array)?;
    let from = baked(&array, from, &device.get().0)?;
    let view = record::fresh(&device.get().0, &from.meta);
    op::run_into(py, &Copy.into(), smallvec![from], std::slice::from_ref(&view))?;
    Ok(tensor::make(py, view)?.into_any())
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(from_numpy, module)?)
}
