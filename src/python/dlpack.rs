//! DLPack both ways: tensors and arrays of other libraries share memory.
//! Structures after the DLPack specification, version 1.0.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use smallvec::smallvec;

use super::tensor::{self, Handle};
use crate::block::Block;
use crate::device::cpu;
use crate::dtype::DType;
use crate::error::Error;
use crate::shape::{Shape, Strides};
use crate::view::{Meta, View};

const OLD: &CStr = c"dltensor";
const NEW: &CStr = c"dltensor_versioned";
const USED_OLD: &CStr = c"used_dltensor";
const USED_NEW: &CStr = c"used_dltensor_versioned";
const CPU: i32 = 1;
const READ_ONLY: u64 = 1;
const MAJOR: u32 = 1;

#[repr(C)]
struct DlDevice {
    kind: i32,
    id: i32,
}

#[repr(C)]
#[derive(Clone, Copy, PartialEq)]
struct DlType {
    code: u8,
    bits: u8,
    lanes: u16,
}

#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device: DlDevice,
    rank: i32,
    dtype: DlType,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

#[repr(C)]
struct Managed {
    tensor: DlTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

#[repr(C)]
struct Versioned {
    version: [u32; 2],
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Versioned)>,
    flags: u64,
    tensor: DlTensor,
}

const fn dl_type(dtype: DType) -> DlType {
    let code = match dtype {
        DType::Int8 | DType::Int32 | DType::Int64 => 0,
        DType::UInt8 => 1,
        DType::Float16 | DType::Float32 | DType::Float64 => 2,
        DType::BFloat16 => 4,
        DType::Bool => 6,
    };
    DlType { code, bits: dtype.size() as u8 * 8, lanes: 1 }
}

/// What an exported tensor needs for as long as the consumer holds it.
struct Export {
    _view: View,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

impl Export {
    fn new(view: &View) -> Box<Self> {
        let shape = view.meta.shape.iter().map(|&n| n as i64).collect();
        let strides = view.meta.strides.iter().map(|&n| n as i64).collect();
        Box::new(Export { _view: view.clone(), shape, strides })
    }

    fn tensor(&mut self, data: *mut u8) -> DlTensor {
        let meta = &self._view.meta;
        DlTensor {
            data: data.cast(),
            device: DlDevice { kind: CPU, id: 0 },
            rank: meta.shape.rank() as i32,
            dtype: dl_type(meta.dtype),
            shape: self.shape.as_mut_ptr(),
            strides: self.strides.as_mut_ptr(),
            byte_offset: (self._view.offset * meta.dtype.size()) as u64,
        }
    }
}

unsafe extern "C" fn delete_old(managed: *mut Managed) {
    // SAFETY: made by `Box::into_raw` in `__dlpack__`, and deleted once.
    unsafe { drop(Box::from_raw((*managed).context.cast::<Export>())) };
    // SAFETY: as above.
    unsafe { drop(Box::from_raw(managed)) };
}

unsafe extern "C" fn delete_new(managed: *mut Versioned) {
    // SAFETY: made by `Box::into_raw` in `__dlpack__`, and deleted once.
    unsafe { drop(Box::from_raw((*managed).context.cast::<Export>())) };
    // SAFETY: as above.
    unsafe { drop(Box::from_raw(managed)) };
}

/// Deletes what a capsule holds if no consumer took it.
unsafe extern "C" fn capsule_dropped(capsule: *mut ffi::PyObject) {
    // SAFETY: a consumer renames the capsule, so a name that still stands means that the
    // structure is ours to delete.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, OLD.as_ptr()) == 1 {
            delete_old(ffi::PyCapsule_GetPointer(capsule, OLD.as_ptr()).cast());
        } else if ffi::PyCapsule_IsValid(capsule, NEW.as_ptr()) == 1 {
            delete_new(ffi::PyCapsule_GetPointer(capsule, NEW.as_ptr()).cast());
        }
    }
}

#[pymethods]
impl Handle {
    /// The tensor's memory as a DLPack capsule, shared (copied where `copy` is true).
    ///
    /// Writes by the consumer are not seen by the tape's check of versions.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if stream.is_some() || dl_device.is_some_and(|d| d != (CPU, 0)) {
            return Err(PyBufferError::new_err(
                "__dlpack__: the tensor is on the CPU, which has no streams",
            ));
        }
        let view = if copy == Some(true) { self.copied(py)? } else { self.view()? };
        let data = view.block.to_touch()?.as_ptr();
        match max_version.is_some_and(|(major, _)| major >= MAJOR) {
            true => capsule(py, Box::into_raw(export_new(&view, data)).cast(), NEW),
            false => capsule(py, Box::into_raw(export_old(&view, data)).cast(), OLD),
        }
    }

    /// (1, 0): the CPU.
    fn __dlpack_device__(&self) -> (i32, i32) {
        (CPU, 0)
    }
}

impl Handle {
    fn copied(&self, py: Python<'_>) -> PyResult<View> {
        let view = self.view()?;
        let engine = crate::engine::of(view.block.device())?;
        let kind = crate::ops::copy::Copy.into();
        Ok(py.detach(|| engine.submit(engine.turn(), &kind, smallvec![view]))?[0].clone())
    }
}

fn export_old(view: &View, data: *mut u8) -> Box<Managed> {
    let mut export = Export::new(view);
    let tensor = export.tensor(data);
    Box::new(Managed { tensor, context: Box::into_raw(export).cast(), deleter: Some(delete_old) })
}

fn export_new(view: &View, data: *mut u8) -> Box<Versioned> {
    let mut export = Export::new(view);
    let tensor = export.tensor(data);
    Box::new(Versioned {
        version: [MAJOR, 0],
        context: Box::into_raw(export).cast(),
        deleter: Some(delete_new),
        flags: 0,
        tensor,
    })
}

fn capsule<'py>(
    py: Python<'py>,
    pointer: *mut c_void,
    name: &'static CStr,
) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: the pointer is a structure of the kind that the name tells, and the destructor
    // frees it unless a consumer took it.
    unsafe {
        let object = ffi::PyCapsule_New(pointer, name.as_ptr(), Some(capsule_dropped));
        Bound::from_owned_ptr_or_err(py, object)
    }
}

/// Keeps the producer's memory alive until the block dies.
struct Import<T> {
    managed: *mut T,
    delete: unsafe fn(*mut T),
}

// SAFETY: the specification lets deleters run on any thread.
unsafe impl<T> Send for Import<T> {}
// SAFETY: nothing is reachable through a shared import.
unsafe impl<T> Sync for Import<T> {}

impl<T> Drop for Import<T> {
    fn drop(&mut self) {
        // SAFETY: the producer's structure, deleted once. A producer's deleter may touch Python
        // objects, so Python's lock is taken (it may be held already).
        Python::attach(|_| unsafe { (self.delete)(self.managed) });
    }
}

unsafe fn call_old(managed: *mut Managed) {
    // SAFETY: by the caller's promise this is the producer's structure.
    if let Some(delete) = unsafe { (*managed).deleter } {
        // SAFETY: as above.
        unsafe { delete(managed) }
    }
}

unsafe fn call_new(managed: *mut Versioned) {
    // SAFETY: by the caller's promise this is the producer's structure.
    if let Some(delete) = unsafe { (*managed).deleter } {
        // SAFETY: as above.
        unsafe { delete(managed) }
    }
}

/// A tensor on the memory of another library's array (`__dlpack__`), shared; the dtype is kept.
///
/// Raises BufferError for memory that is not on the CPU or is read-only, DTypeError for elements
/// that singa_rs does not have.
#[pyfunction]
fn from_dlpack<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Handle>> {
    let device: (i32, i32) = object.call_method0("__dlpack_device__")?.extract()?;
    if device.0 != CPU {
        let message = format!("from_dlpack: got memory on device {device:?}, want the CPU (1, 0)");
        return Err(PyBufferError::new_err(message));
    }
    let capsule = ask(object)?;
    let view = unsafe_import(&capsule)?;
    tensor::make(object.py(), view)
}

/// Asks for a versioned capsule; old producers do not know the keyword.
fn ask<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyCapsule>> {
    let options = PyDict::new(object.py());
    options.set_item("max_version", (MAJOR, 0))?;
    let answer = match object.call_method("__dlpack__", (), Some(&options)) {
        Err(e) if e.is_instance_of::<pyo3::exceptions::PyTypeError>(object.py()) => {
            object.call_method0("__dlpack__")?
        }
        other => other?,
    };
    Ok(answer.cast_into()?)
}

fn unsafe_import(capsule: &Bound<'_, PyCapsule>) -> PyResult<View> {
    let object = capsule.as_ptr();
    // SAFETY: the capsule's name tells which structure it holds; renaming it makes the structure
    // ours, which is done only once the tensor has been accepted.
    unsafe {
        if ffi::PyCapsule_IsValid(object, NEW.as_ptr()) == 1 {
            let managed: *mut Versioned = ffi::PyCapsule_GetPointer(object, NEW.as_ptr()).cast();
            check_version(&*managed)?;
            let parts = Parts::read(&(*managed).tensor)?;
            ffi::PyCapsule_SetName(object, USED_NEW.as_ptr());
            Ok(parts.view(Box::new(Import { managed, delete: call_new })))
        } else if ffi::PyCapsule_IsValid(object, OLD.as_ptr()) == 1 {
            let managed: *mut Managed = ffi::PyCapsule_GetPointer(object, OLD.as_ptr()).cast();
            let parts = Parts::read(&(*managed).tensor)?;
            ffi::PyCapsule_SetName(object, USED_OLD.as_ptr());
            Ok(parts.view(Box::new(Import { managed, delete: call_old })))
        } else {
            Err(PyBufferError::new_err(
                "from_dlpack: the capsule was used already or is of another kind",
            ))
        }
    }
}

fn check_version(managed: &Versioned) -> PyResult<()> {
    if managed.version[0] != MAJOR {
        return Err(PyBufferError::new_err(format!(
            "from_dlpack: got DLPack {:?}, want 1.x",
            managed.version
        )));
    }
    if managed.flags & READ_ONLY != 0 {
        return Err(PyBufferError::new_err(
            "from_dlpack: the array is read-only and a tensor can be written; pass a copy",
        ));
    }
    Ok(())
}

/// What a DLPack tensor says, in our terms.
struct Parts {
    meta: Meta,
    first: NonNull<u8>,
}

impl Parts {
    /// # Safety
    /// `tensor` is a valid DLPack tensor.
    unsafe fn read(tensor: &DlTensor) -> PyResult<Parts> {
        let dtype = DType::ALL.into_iter().find(|d| dl_type(*d) == tensor.dtype);
        let DlType { code, bits, lanes } = tensor.dtype;
        let unknown = || {
            format!(
                "from_dlpack: got DLPack type code {code}, {bits} bits, {lanes} lanes, want a dtype of singa_rs"
            )
        };
        let dtype = dtype.ok_or_else(|| super::error::DTypeError::new_err(unknown()))?;
        // SAFETY: by the caller's promise.
        let meta = unsafe { Self::meta(tensor, dtype) }?;
        let first = tensor.data.cast::<u8>().wrapping_add(tensor.byte_offset as usize);
        let first = NonNull::new(first).unwrap_or(NonNull::dangling());
        let aligned = meta.numel() == 0 || first.addr().get().is_multiple_of(dtype.size());
        let want = format!("memory aligned to {} bytes", dtype.size());
        crate::ensure!(aligned, Error::value("from_dlpack", format!("{first:?}"), want).into());
        Ok(Parts { meta, first })
    }

    /// # Safety
    /// `tensor` is a valid DLPack tensor.
    unsafe fn meta(tensor: &DlTensor, dtype: DType) -> PyResult<Meta> {
        let rank = tensor.rank.max(0) as usize;
        // SAFETY: the specification gives `rank` extents, and as many strides unless null.
        let ints = |p: *mut i64| unsafe { (0..rank).map(|d| *p.add(d)).collect::<Vec<i64>>() };
        let extents = ints(tensor.shape);
        let shape: Shape = extents.iter().map(|&n| n as usize).collect();
        shape.checked_numel("from_dlpack")?;
        let mut meta = Meta::new(dtype, shape);
        if !tensor.strides.is_null() {
            meta.strides = ints(tensor.strides).iter().map(|&n| n as isize).collect::<Strides>();
        }
        let got = || format!("extents {extents:?} with strides {:?}", meta.strides);
        let want = "extents and strides within the address space";
        crate::ensure!(meta.fits_memory(), Error::value("from_dlpack", got(), want).into());
        Ok(meta)
    }

    /// The view; its block spans exactly the bytes that the elements lie in.
    fn view(self, owner: Box<dyn crate::block::Owner>) -> View {
        let (span, size) = (self.meta.span(), self.meta.dtype.size());
        let low = self.first.as_ptr().wrapping_offset(span.start * size as isize);
        let start = NonNull::new(low).unwrap_or(self.first);
        let bytes = (span.end - span.start) as usize * size;
        let block = Block::foreign(cpu::device(), bytes, start, owner);
        View { block, offset: -span.start as usize, meta: std::sync::Arc::new(self.meta) }
    }
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(from_dlpack, module)?)
}
