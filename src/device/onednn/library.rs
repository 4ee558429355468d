//! The opened library, and ownership of its objects.

use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::path::Path;
use std::ptr::NonNull;

use super::api::{self, Destroy, Functions, Raw, Status};
use super::shortage::Shortage;
use super::single::Single;
use crate::device::heap;
use crate::error::{Error, Result};

/// More heap than oneDNN uses to generate code.
const ROOM_BYTES: usize = 16 << 20;

/// The library's functions and its CPU engine. The library is never closed.
pub struct Library {
    pub(super) functions: Functions,
    pub(super) major: c_int,
    pub(super) minor: c_int,
    engine: Raw,
    single: Single,
    shortage: Option<Shortage>,
}

// SAFETY: engines may be used from any thread; the rest are function pointers.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

impl Library {
    /// Opens the file; the error explains in words why that failed.
    pub(super) fn open(path: &Path) -> std::result::Result<Self, String> {
        let path = path.canonicalize().map_err(|e| e.to_string())?;
        // SAFETY: the user, or the package manager, vouches for the file.
        let file = unsafe { libloading::Library::new(&path) }.map_err(|e| e.to_string())?;
        // Never closed: other threads may be running its code when the process exits.
        let file: &'static libloading::Library = Box::leak(Box::new(file));
        // SAFETY: the symbols' types are those of oneDNN 3 and OpenMP.
        unsafe { Self::load(file) }
    }

    /// # Safety
    /// `file` is oneDNN 3.
    unsafe fn load(file: &'static libloading::Library) -> std::result::Result<Self, String> {
        // SAFETY: guaranteed by the caller. OpenMP is found among the library's own dependencies,
        // so it is the runtime that the library uses.
        unsafe {
            let functions = Functions::load(file).map_err(|e| e.to_string())?;
            let version = *(functions.version)();
            if version.major != 3 || version.cpu_runtime != api::RUNTIME_OMP {
                let (major, minor) = (version.major, version.minor);
                return Err(format!("is version {major}.{minor}, want 3 built for OpenMP"));
            }
            let mut engine = std::ptr::null_mut();
            let status = (functions.engine_create)(&mut engine, api::ENGINE_CPU, 0);
            if status != 0 {
                return Err(format!("answers {status} to engine_create"));
            }
            Ok(Library {
                functions,
                major: version.major,
                minor: version.minor,
                engine,
                single: Single::load(file).map_err(|e| e.to_string())?,
                shortage: Shortage::load(file),
            })
        }
    }

    pub(super) fn engine(&self) -> Raw {
        self.engine
    }

    /// Lets the library use the heap's reserve from now on if the heap runs dry.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if little memory is left.
    pub(super) fn expect_memory(&self) -> Result<()> {
        self.shortage.iter().for_each(Shortage::expect);
        heap::expect(ROOM_BYTES)
    }

    /// Runs `body`, in which the library uses the calling thread alone.
    pub(super) fn alone<T>(&self, body: impl FnOnce() -> T) -> T {
        self.single.run(body)
    }

    /// Runs `body` with the calling thread's stream.
    pub(super) fn with_stream<T>(&self, body: impl FnOnce(Raw) -> Result<T>) -> Result<T> {
        thread_local! {
            static STREAM: RefCell<Option<Owned>> = const { RefCell::new(None) };
        }
        STREAM.with_borrow_mut(|slot| {
            let f = &self.functions;
            let make = |raw| {
                // SAFETY: the engine lives as long as the library.
                unsafe { (f.stream_create)(raw, self.engine, api::STREAM_IN_ORDER) }
            };
            let stream = match slot.take() {
                Some(stream) => stream,
                None => Owned::new("dnnl_stream_create", f.stream_destroy, make)?,
            };
            body(slot.insert(stream).raw())
        })
    }
}

/// An object of the library, destroyed when dropped.
pub(super) struct Owned {
    raw: NonNull<c_void>,
    destroy: Destroy,
}

// SAFETY: the library's objects are not tied to a thread.
unsafe impl Send for Owned {}
// SAFETY: shared objects are only read: memory objects are never shared (`Primitive` hands each run
// its own).
unsafe impl Sync for Owned {}

impl Owned {
    /// Takes ownership of the object that `create` writes.
    pub(super) fn new(
        call: &'static str,
        destroy: Destroy,
        create: impl FnOnce(*mut Raw) -> Status,
    ) -> Result<Self> {
        let mut raw = std::ptr::null_mut();
        check(call, create(&mut raw))?;
        let missing = || error(call, 0);
        Ok(Owned { raw: NonNull::new(raw).ok_or_else(missing)?, destroy })
    }

    pub(super) fn raw(&self) -> Raw {
        self.raw.as_ptr()
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: we own the object, and this is its destructor.
        unsafe { (self.destroy)(self.raw()) };
    }
}

/// Converts a status to a result.
pub(super) fn check(call: &'static str, status: Status) -> Result<()> {
    if status == 0 { Ok(()) } else { Err(error(call, status)) }
}

fn error(call: &'static str, status: Status) -> Error {
    Error::Library { op: "onednn".into(), library: "oneDNN", call, status }
}
