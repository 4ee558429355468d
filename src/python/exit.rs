//! Releasing and taking the GIL, safe even where the interpreter shuts down in between.
//!
//! The interpreter does not wait for daemon threads: one that takes the GIL after shutdown has
//! begun is terminated on the spot, and inside Rust code that would abort the process. Such a
//! thread is parked instead, and before the process's libraries are unloaded, threads that compute
//! are stopped.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_int, c_void};
use std::sync::OnceLock;
use std::time::Duration;

use pyo3::prelude::*;

use crate::device::ending;

/// How long process exit waits for kernels running on other threads.
const LONGEST: Duration = Duration::from_secs(10);

/// [`Python::detach`]: runs `body` without the GIL.
pub(super) fn detach<T: Send>(py: Python<'_>, body: impl Send + FnOnce() -> T) -> T {
    keep_thread();
    py.detach(|| {
        let made = ending::inside(body);
        if is_ending() {
            ending::park();
        }
        made
    })
}

/// [`Python::attach`]: runs user code. None where the interpreter is shutting down and keeps the
/// GIL for good.
pub(super) fn attach<T>(body: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    keep_thread();
    if ending::is_inside() && is_ending() {
        return None;
    }
    ending::outside(|| Python::try_attach(body))
}

/// Must be called where a thread enters from Python: keeps it from being terminated inside Rust
/// code.
#[inline]
pub(super) fn keep_thread() {
    ending::keep_thread(is_ending);
}

/// Whether the interpreter is shutting down.
fn is_ending() -> bool {
    type Asked = unsafe extern "C" fn() -> c_int;
    static ASKED: OnceLock<Option<Asked>> = OnceLock::new();
    let asked = ASKED.get_or_init(|| {
        // The name since Python 3.13, and the earlier one.
        let names = [c"Py_IsFinalizing", c"_Py_IsFinalizing"].into_iter();
        // SAFETY: the function has no arguments and may be called at any time.
        names.map(in_python).find_map(|found| unsafe {
            (!found.is_null()).then(|| std::mem::transmute::<*mut c_void, Asked>(found))
        })
    });
    // SAFETY: as above; the other function may be called at any time, too.
    unsafe { pyo3::ffi::Py_IsInitialized() == 0 || asked.is_some_and(|asked| asked() != 0) }
}

/// The address of a function of the interpreter; null if it has none of this name.
#[cfg(unix)]
fn in_python(name: &CStr) -> *mut c_void {
    // SAFETY: looks for a name.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
}

/// The address of a function of the interpreter; null if it has none of this name.
#[cfg(windows)]
fn in_python(name: &CStr) -> *mut c_void {
    use libloading::os::windows::Library;
    let Ok(library) = Library::open_already_loaded("python3.dll") else {
        return std::ptr::null_mut();
    };
    // SAFETY: only the address is taken, and the interpreter stays loaded.
    let found = unsafe { library.get::<*mut c_void>(name.to_bytes_with_nul()) };
    found.map_or(std::ptr::null_mut(), |found| *found)
}

/// Called when the interpreter has ended, before the process's libraries are unloaded.
extern "C" fn end() {
    ending::end(LONGEST);
}

pub(super) fn register() {
    keep_thread();
    is_ending();
    // SAFETY: the function calls nothing in Python. If no slot is left, exit does not wait.
    unsafe { pyo3::ffi::Py_AtExit(Some(end)) };
}
