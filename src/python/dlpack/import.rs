//! Memory borrowed from other libraries.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::ptr::NonNull;
use std::sync::Arc;

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use super::super::error::DTypeError;
use super::super::exit;
use super::super::tensor::{self, Handle};
use super::{
    CPU, CUDA, DlTensor, DlType, MAJOR, Managed, READ_ONLY, Unversioned, Versioned, dl_type,
};
use crate::block::Block;
use crate::device::Device;
use crate::dtype::DType;
use crate::engine;
use crate::error::Error;
use crate::kernels::{self, gpu::Gpu};
use crate::shape::{Shape, Strides};
use crate::view::{Meta, View};

/// Keeps the producer's memory alive until the block is dropped.
struct Import<T: Managed> {
    managed: *mut T,
    /// Where the memory is, unless it is the host's.
    gpu: Option<Gpu>,
}

// SAFETY: the specification lets deleters run on any thread.
unsafe impl<T: Managed> Send for Import<T> {}
// SAFETY: a shared reference to an import gives access to nothing.
unsafe impl<T: Managed> Sync for Import<T> {}

impl<T: Managed> Drop for Import<T> {
    fn drop(&mut self) {
        // What was put on the stream may still use the memory.
        if let Some(Err(error)) = self.gpu.as_ref().map(Gpu::wait) {
            log::error!("{error}");
        }
        // A producer's deleter may touch Python objects, so the GIL is taken (it may be held
        // already). Once the interpreter has ended, there is nobody to return the memory to.
        let _ = exit::attach(|_| {
            // SAFETY: the producer's structure, which nothing has deleted.
            let delete = unsafe { &*self.managed }.parts().2;
            // SAFETY: as above; it is deleted once.
            delete.into_iter().for_each(|delete| unsafe { delete(self.managed) });
        });
    }
}

/// A tensor on the memory of another library's array (`__dlpack__`), shared; the dtype is kept.
///
/// Raises BufferError for memory that is neither on the CPU nor on a GPU of CUDA, or is read-only,
/// DTypeError for elements that singa_rs does not have.
#[pyfunction]
pub(super) fn from_dlpack<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Handle>> {
    if let Ok(handle) = object.cast::<Handle>() {
        return handle.get().alias(object.py()); // one block, so that its version counts all writes
    }
    let device: (i32, i32) = object.call_method0("__dlpack_device__")?.extract()?;
    let gpu = match device {
        (CPU, _) => None,
        (CUDA, ordinal) => Some(numbered(object.py(), ordinal)?),
        _ => {
            let want = "the CPU (1, 0) or a GPU of CUDA (2, n)";
            let message = format!("from_dlpack: got memory on device {device:?}, want {want}");
            return Err(PyBufferError::new_err(message));
        }
    };
    let capsule = ask(object, gpu.as_ref())?;
    tensor::make(object.py(), take(&capsule, device.0, gpu)?)
}

/// The GPU of a number, which runs operations.
fn numbered(py: Python<'_>, ordinal: i32) -> PyResult<Gpu> {
    let gpu = exit::detach(py, || Gpu::numbered(ordinal as usize))?;
    engine::start(&gpu.device);
    Ok(gpu)
}

/// Asks for a versioned capsule, whose memory may be used on the GPU's stream; old producers do not
/// know the keyword of the version.
fn ask<'py>(object: &Bound<'py, PyAny>, gpu: Option<&Gpu>) -> PyResult<Bound<'py, PyCapsule>> {
    let options = PyDict::new(object.py());
    if let Some(gpu) = gpu {
        options.set_item("stream", gpu.stream().0)?;
    }
    let old = options.copy()?;
    options.set_item("max_version", (MAJOR, 0))?;
    let answer = match object.call_method("__dlpack__", (), Some(&options)) {
        Err(e) if e.is_instance_of::<pyo3::exceptions::PyTypeError>(object.py()) => {
            object.call_method("__dlpack__", (), Some(&old))?
        }
        other => other?,
    };
    Ok(answer.cast_into()?)
}

/// Takes the memory, which is on a device of this kind.
fn take(capsule: &Bound<'_, PyCapsule>, kind: i32, gpu: Option<Gpu>) -> PyResult<View> {
    let holds = |[name, _]: [&CStr; 2]| {
        // SAFETY: any object may be asked about.
        unsafe { ffi::PyCapsule_IsValid(capsule.as_ptr(), name.as_ptr()) == 1 }
    };
    match (holds(Versioned::NAMES), holds(Unversioned::NAMES)) {
        // SAFETY: the capsule's name says what it holds.
        (true, _) => unsafe { take_as::<Versioned>(capsule, kind, gpu) },
        // SAFETY: as above.
        (_, true) => unsafe { take_as::<Unversioned>(capsule, kind, gpu) },
        _ => Err(PyBufferError::new_err(
            "from_dlpack: the capsule was used already or is of another kind",
        )),
    }
}

/// # Safety
/// The capsule holds this structure.
unsafe fn take_as<T: Managed>(
    capsule: &Bound<'_, PyCapsule>,
    kind: i32,
    gpu: Option<Gpu>,
) -> PyResult<View> {
    let (object, [name, used]) = (capsule.as_ptr(), T::NAMES);
    let device = gpu.as_ref().map_or_else(|| kernels::host().clone(), |gpu| gpu.device.clone());
    // SAFETY: by the caller's promise.
    let managed: *mut T = unsafe { ffi::PyCapsule_GetPointer(object, name.as_ptr()) }.cast();
    // SAFETY: as above.
    let held = unsafe { &*managed };
    check_version(held.version())?;
    // SAFETY: the producer's tensor is valid.
    let parts = unsafe { Parts::read(held.parts().0, kind) }?;
    // SAFETY: renaming the capsule transfers ownership, now that the tensor has been accepted.
    unsafe { ffi::PyCapsule_SetName(object, used.as_ptr()) };
    Ok(parts.view(&device, Box::new(Import { managed, gpu })))
}

fn check_version((version, flags): ([u32; 2], u64)) -> PyResult<()> {
    if version[0] != MAJOR {
        let message = format!("from_dlpack: got DLPack {version:?}, want 1.x");
        return Err(PyBufferError::new_err(message));
    }
    if flags & READ_ONLY != 0 {
        return Err(PyBufferError::new_err(
            "from_dlpack: the array is read-only and a tensor can be written; pass a copy",
        ));
    }
    Ok(())
}

/// A DLPack tensor as a meta and an address.
struct Parts {
    meta: Meta,
    first: NonNull<u8>,
}

impl Parts {
    /// # Safety
    /// `tensor` is a valid DLPack tensor.
    unsafe fn read(tensor: &DlTensor, kind: i32) -> PyResult<Parts> {
        if tensor.device.kind != kind {
            let (got, want) =
                (tensor.device.kind, format!("the {kind} that __dlpack_device__ says"));
            let message = format!("from_dlpack: got memory on a device of kind {got}, want {want}");
            return Err(PyBufferError::new_err(message));
        }
        let dtype = DType::ALL.into_iter().find(|d| dl_type(*d) == tensor.dtype);
        let DlType { code, bits, lanes } = tensor.dtype;
        let unknown = || {
            format!(
                "from_dlpack: got DLPack type code {code}, {bits} bits, {lanes} lanes, want a dtype of singa_rs"
            )
        };
        let dtype = dtype.ok_or_else(|| DTypeError::new_err(unknown()))?;
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
        // SAFETY: by the specification there are `rank` extents, and as many strides unless null.
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

    /// The view; its block spans exactly the bytes of the elements.
    fn view(self, device: &Arc<Device>, owner: Box<dyn crate::block::Owner>) -> View {
        let (span, size) = (self.meta.span(), self.meta.dtype.size());
        let low = self.first.as_ptr().wrapping_offset(span.start * size as isize);
        let start = NonNull::new(low).unwrap_or(self.first);
        let bytes = (span.end - span.start) as usize * size;
        let block = Block::foreign(device, bytes, start, owner);
        View { block, offset: -span.start as usize, meta: Arc::new(self.meta) }
    }
}
