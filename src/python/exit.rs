//! Python's lock, given away and taken back, also where the interpreter ends meanwhile.
//!
//! The interpreter does not wait for daemon threads: one that takes Python's lock after the end has
//! begun is ended on the spot, and in the middle of our functions that would end the process. Such
//! a thread is put to rest instead, and before the process's libraries are taken down, whoever
//! computes is stopped.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::sync::OnceLock;
use std::time::Duration;

use pyo3::prelude::*;

use crate::device::ending;

/// How long the end of the process waits for kernels that run on other threads.
const LONGEST: Duration = Duration::from_secs(10);

/// [`Python::detach`]: runs `body` without Python's lock.
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

/// [`Python::attach`]: runs what belongs to the user. None where the interpreter ends, and has the
/// lock for good.
pub(super) fn attach<T>(body: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    keep_thread();
    if ending::is_inside() && is_ending() {
        return None;
    }
    ending::outside(|| Python::try_attach(body))
}

/// To be called where a thread comes from Python: keeps it from being ended in our functions.
#[inline]
pub(super) fn keep_thread() {
    ending::keep_thread(is_ending);
}

/// Whether the interpreter takes itself down.
fn is_ending() -> bool {
    type Asked = unsafe extern "C" fn() -> c_int;
    static ASKED: OnceLock<Option<Asked>> = OnceLock::new();
    let asked = ASKED.get_or_init(|| {
        // The name since Python 3.13, and the one before.
        let names = [c"Py_IsFinalizing", c"_Py_IsFinalizing"].into_iter();
        // SAFETY: the function has no arguments and may be called at any time.
        names.map(|name| unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }).find_map(
            |found| {
                // SAFETY: as above.
                (!found.is_null()).then(|| unsafe { std::mem::transmute::<_, Asked>(found) })
            },
        )
    });
    // SAFETY: as above; the other one may be called at any time, too.
    unsafe { pyo3::ffi::Py_IsInitialized() == 0 || asked.is_some_and(|asked| asked() != 0) }
}

/// Called when the interpreter has ended, and before the process's libraries are taken down.
extern "C" fn end() {
    ending::end(LONGEST);
}

pub(super) fn register() {
    keep_thread();
    is_ending();
    // SAFETY: the function calls nothing of Python's. Where there is no room for it, nobody waits.
    unsafe { pyo3::ffi::Py_AtExit(Some(end)) };
}
