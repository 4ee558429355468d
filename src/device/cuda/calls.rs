//! What calls of CUDA's libraries have in common.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use cudarc::driver::sys;

use super::driver::Call;
use super::installed::enter;
use super::refusal;
use crate::device::Stream;
use crate::dtype::DType;
use crate::error::Result;

/// What a library made, by its address.
pub(super) type Handle = *mut c_void;
/// What its functions answer: 0 where all is well.
pub(super) type Status = c_int;
/// Makes something of which no more is said.
pub(super) type Make = unsafe extern "C" fn(*mut Handle) -> Status;
/// Releases what was made.
pub(super) type Release = unsafe extern "C" fn(Handle) -> Status;

/// What a library made, and releases.
pub(super) struct Owned {
    pub handle: Handle,
    release: Release,
}

// SAFETY: what is owned is only read once it is made.
unsafe impl Send for Owned {}
// SAFETY: as above.
unsafe impl Sync for Owned {}

impl Owned {
    /// # Errors
    /// [`crate::Error::Device`] with what `make` answers.
    ///
    /// # Safety
    /// `release` takes what `make` makes.
    pub(super) unsafe fn new(
        release: Release,
        make: impl FnOnce(*mut Handle) -> Status,
    ) -> Result<Owned> {
        let mut handle = std::ptr::null_mut();
        done(make(&mut handle))?;
        Ok(Owned { handle, release })
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: by the promise of who made it; nobody uses it any more.
        unsafe { (self.release)(self.handle) };
    }
}

/// A factor as libraries read it: a double for products of doubles, or else a float.
#[repr(align(8))]
pub(super) struct Factor([u8; 8]);

impl Factor {
    pub(super) fn new(value: f64, dtype: DType) -> Factor {
        let mut bytes = value.to_ne_bytes();
        if dtype != DType::Float64 {
            bytes[..4].copy_from_slice(&(value as f32).to_ne_bytes());
        }
        Factor(bytes)
    }

    pub(super) fn place(&self) -> *const c_void {
        self.0.as_ptr().cast()
    }
}

/// The pointer to an address of the GPU.
pub(super) fn place(address: u64) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(address as usize)
}

/// # Errors
/// [`crate::Error::Device`] where a library answers that something is wrong.
pub(super) fn done(status: Status) -> Result<()> {
    crate::ensure!(status == 0, refusal(format!("a library of CUDA answers {status}")));
    Ok(())
}

/// A call of a library in the context that it was prepared in.
pub(super) struct Within {
    call: Arc<dyn Call>,
    context: sys::CUcontext,
}

impl Within {
    pub(super) fn new(call: Arc<dyn Call>, context: sys::CUcontext) -> Within {
        Within { call, context }
    }
}

// SAFETY: a context may be that of any thread.
unsafe impl Send for Within {}
// SAFETY: as above.
unsafe impl Sync for Within {}

impl Call for Within {
    fn scratch(&self) -> usize {
        self.call.scratch()
    }

    fn alignment(&self) -> u64 {
        self.call.alignment()
    }

    unsafe fn put(&self, stream: Stream, tensors: &[u64], scratch: u64) -> Result<()> {
        enter(self.context)?;
        // SAFETY: guaranteed by the caller.
        unsafe { self.call.put(stream, tensors, scratch) }
    }
}
