//! What functions return, and the message of the last one that failed.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};

use crate::error::{Error, Result, guarded};

const OK: c_int = 0;
const INVALID: c_int = 1;
const FILE: c_int = 2;
const MEMORY: c_int = 3;
const FAILED: c_int = 4;

thread_local! {
    static MESSAGE: RefCell<CString> = RefCell::default();
}

/// The status of what `run` returns; a panic in it fails, too.
pub(super) fn status(op: &'static str, run: impl FnOnce() -> Result<()>) -> c_int {
    let Err(error) = guarded(op, run) else { return OK };
    let text = error.to_string().replace('\0', " ");
    MESSAGE.set(CString::new(text).unwrap_or_default());
    match error {
        Error::Shape { .. } | Error::DType { .. } | Error::Value { .. } => INVALID,
        Error::Index { .. } | Error::Arity { .. } => INVALID,
        Error::Checkpoint { .. } => FILE,
        Error::OutOfMemory { .. } | Error::Budget { .. } => MEMORY,
        _ => FAILED,
    }
}

/// Why this thread's last failed call failed. Valid until its next call.
#[unsafe(no_mangle)]
pub extern "C" fn singa_step_error() -> *const c_char {
    MESSAGE.with_borrow(|message| message.as_ptr())
}
