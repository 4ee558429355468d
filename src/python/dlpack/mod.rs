//! DLPack in both directions: tensors share memory with arrays of other libraries, on the CPU and on
//! GPUs. The structures follow the DLPack specification, version 1.0.

mod export;
mod import;

use std::ffi::{CStr, c_void};

use pyo3::prelude::*;

use crate::device::Device;
use crate::dtype::DType;

const CPU: i32 = 1;
const CUDA: i32 = 2;
const READ_ONLY: u64 = 1;
const IS_COPIED: u64 = 1 << 1;
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

/// Frees a tensor and what its memory belongs to.
type Deleter<T> = Option<unsafe extern "C" fn(*mut T)>;

#[repr(C)]
struct Unversioned {
    tensor: DlTensor,
    context: *mut c_void,
    deleter: Deleter<Self>,
}

#[repr(C)]
struct Versioned {
    version: [u32; 2],
    context: *mut c_void,
    deleter: Deleter<Self>,
    flags: u64,
    tensor: DlTensor,
}

/// What a capsule holds.
trait Managed: Sized + 'static {
    /// The name of capsules that hold one, and of those from which it was taken.
    const NAMES: [&'static CStr; 2];

    fn new(tensor: DlTensor, context: *mut c_void, deleter: Deleter<Self>, flags: u64) -> Self;

    /// The version, and the flags.
    fn version(&self) -> ([u32; 2], u64);

    /// The tensor, the exporter's context and its deleter.
    fn parts(&self) -> (&DlTensor, *mut c_void, Deleter<Self>);
}

impl Managed for Unversioned {
    const NAMES: [&'static CStr; 2] = [c"dltensor", c"used_dltensor"];

    fn new(tensor: DlTensor, context: *mut c_void, deleter: Deleter<Self>, _: u64) -> Self {
        Unversioned { tensor, context, deleter }
    }

    fn version(&self) -> ([u32; 2], u64) {
        ([MAJOR, 0], 0)
    }

    fn parts(&self) -> (&DlTensor, *mut c_void, Deleter<Self>) {
        (&self.tensor, self.context, self.deleter)
    }
}

impl Managed for Versioned {
    const NAMES: [&'static CStr; 2] = [c"dltensor_versioned", c"used_dltensor_versioned"];

    fn new(tensor: DlTensor, context: *mut c_void, deleter: Deleter<Self>, flags: u64) -> Self {
        Versioned { version: [MAJOR, 0], context, deleter, flags, tensor }
    }

    fn version(&self) -> ([u32; 2], u64) {
        (self.version, self.flags)
    }

    fn parts(&self) -> (&DlTensor, *mut c_void, Deleter<Self>) {
        (&self.tensor, self.context, self.deleter)
    }
}

const fn dl_type(dtype: DType) -> DlType {
    let code = match dtype {
        DType::Int8 | DType::Int16 | DType::Int32 | DType::Int64 => 0,
        DType::UInt8 | DType::UInt16 | DType::UInt32 | DType::UInt64 => 1,
        DType::Float16 | DType::Float32 | DType::Float64 => 2,
        DType::BFloat16 => 4,
        DType::Bool => 6,
    };
    DlType { code, bits: dtype.size() as u8 * 8, lanes: 1 }
}

/// The kind and the number of a device.
fn place(device: &Device) -> (i32, i32) {
    if device.pool().backend().is_host() { (CPU, 0) } else { (CUDA, device.id()) }
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(import::from_dlpack, module)?)
}
