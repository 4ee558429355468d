//! The opened library, and ownership of its objects.

use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::path::Path;
use std::ptr::NonNull;

use super::api::{self, Destroy, Functions, Raw, Status};
use super::shortage::Shortage;
use crate::device::heap;
use crate::device::team::OpenMp;
use crate::error::{Error, Result};

/// More than oneDNN takes of the heap while it makes code.
const ROOM_BYTES: usize = 16 << 20;

/// The library's functions and its CPU engine. It is never closed.
pub struct Library {
    pub(super) functions: Functions,
    pub(super) major: c_int,
    pub(super) minor: c_int,
    engine: Raw,
    openmp: OpenMp,
    shortage: Option<Shortage>,
}

// SAFETY: engines may be used from any thread; the rest is addresses of functions.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

impl Library {
    /// Opens the file, or says in words why that cannot be.
    pub(super) fn open(path: &Path) -> std::result::Result<Self, String> {
        let path = path.canonicalize().map_err(|e| e.to_string())?;
        // SAFETY: the user, or the package manager, vouches for the file.
        let file = unsafe { libloading::Library::new(&path) }.map_err(|e| e.to_string())?;
        // Other threads may be in the library's threads when the process ends: never close it.
        let file: &'static libloading::Library = Box::leak(Box::new(file));
        // SAFETY: the symbols' types are those of oneDNN 3 and OpenMP.
        unsafe { Self::load(file) }
    }

    /// # Safety
    /// `file` is oneDNN.
    unsafe fn load(file: &'static libloading::Library) -> std::result::Result<Self, String> {
        // SAFETY: by the caller's promise. OpenMP is found among the library's own dependencies,
        // so it is the runtime whose threads it uses.
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
                openmp: OpenMp::load(file).map_err(|e| e.to_string())?,
                shortage: Shortage::load(file),
            })
        }
    }

    pub(super) fn engine(&self) -> Raw {
        self.engine
    }

    /// As many threads as OpenMP will really start: kernels wait for all that they were made for.
    pub(super) fn limit_threads(&self, width: usize) -> usize {
        self.openmp.limited(width)
    }

    /// Has what the library makes from now on found in the heap even where that runs dry.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] where little is left.
    pub(super) fn expect_memory(&self) -> Result<()> {
        self.shortage.iter().for_each(Shortage::expect);
        heap::expect(ROOM_BYTES)
    }

    /// Runs `body`, in which the library's regions have `width` threads: what was made for so many
    /// computes only a part of its result with fewer.
    pub(super) fn with_threads<T>(
        &self,
        width: usize,
        body: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        self.openmp.with_threads(width, body)?
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

/// An object of the library, given back when dropped.
pub(super) struct Owned {
    raw: NonNull<c_void>,
    destroy: Destroy,
}

// SAFETY: the library's objects are not bound to threads.
unsafe impl Send for Owned {}
// SAFETY: shared objects are only read: memory objects are never shared (`Primitive` hands each
// run its own).
unsafe impl Sync for Owned {}

impl Owned {
    /// The object that `create` writes.
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
        // SAFETY: the object is ours and this is its own destroyer.
        unsafe { (self.destroy)(self.raw()) };
    }
}

/// A status as a result.
pub(super) fn check(call: &'static str, status: Status) -> Result<()> {
    if status == 0 { Ok(()) } else { Err(error(call, status)) }
}

fn error(call: &'static str, status: Status) -> Error {
    Error::Library { op: "onednn".into(), library: "oneDNN", call, status }
}
