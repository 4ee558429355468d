//! Steps for C programs: the functions that `src/capi/singa_step.h` declares and documents.
//!
//! No panic crosses into C: each function catches it and returns a status, and keeps the message
//! for [`singa_step_error`].
#![allow(unsafe_code)]

mod status;
mod step;

use std::ffi::{CStr, c_char, c_int, c_void};
use std::slice;

use crate::error::{Error, Result};
use crate::step::Step;
pub use status::singa_step_error;
use status::status;
use step::{CStep, CTensor};

/// A path or a name.
///
/// # Safety
/// The pointer is null, or to a string that ends with a null byte.
unsafe fn text<'a>(op: &'static str, pointer: *const c_char) -> Result<&'a str> {
    crate::ensure!(!pointer.is_null(), null(op));
    // SAFETY: guaranteed by the caller, as it is not null.
    let bytes = unsafe { CStr::from_ptr(pointer) };
    bytes.to_str().map_err(|_| Error::value(op, format!("{bytes:?}"), "text in UTF-8"))
}

/// What a pointer points to.
///
/// # Safety
/// The pointer is null or valid, for as long as the reference is used.
unsafe fn at<'a, T>(op: &'static str, pointer: *const T) -> Result<&'a T> {
    // SAFETY: guaranteed by the caller.
    unsafe { pointer.as_ref() }.ok_or_else(|| null(op))
}

/// The same, to be written.
///
/// # Safety
/// The pointer is null or valid, and nothing else uses what it points to.
unsafe fn at_mut<'a, T>(op: &'static str, pointer: *mut T) -> Result<&'a mut T> {
    // SAFETY: guaranteed by the caller.
    unsafe { pointer.as_mut() }.ok_or_else(|| null(op))
}

/// The bytes of an array, whose pointer may be null if there are none.
///
/// # Safety
/// The pointer is null, or to so many bytes.
unsafe fn bytes<'a>(op: &'static str, data: *const c_void, count: usize) -> Result<&'a [u8]> {
    if count == 0 {
        return Ok(&[]);
    }
    crate::ensure!(!data.is_null() && count <= isize::MAX as usize, null(op));
    // SAFETY: guaranteed by the caller.
    Ok(unsafe { slice::from_raw_parts(data.cast(), count) })
}

fn null(op: &'static str) -> Error {
    Error::value(op, "a null pointer", "a pointer to memory")
}

/// Reads and plans a step.
///
/// # Safety
/// `path` is null or a string; `to` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn singa_step_open(path: *const c_char, to: *mut *mut CStep) -> c_int {
    const OP: &str = "singa_step_open";
    status(OP, || {
        // SAFETY: guaranteed by the caller.
        let (path, to) = unsafe { (text(OP, path)?, at_mut(OP, to)?) };
        *to = Box::into_raw(Box::new(CStep::new(Step::open(path)?)));
        Ok(())
    })
}

/// Releases a step.
///
/// # Safety
/// `step` is null, or was opened and not closed yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn singa_step_close(step: *mut CStep) -> c_int {
    status("singa_step_close", || {
        if !step.is_null() {
            // SAFETY: it comes from `singa_step_open`, and is given back once.
            drop(unsafe { Box::from_raw(step) });
        }
        Ok(())
    })
}

/// The number of arguments, results or states.
///
/// # Safety
/// The pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn singa_step_count(
    step: *const CStep,
    kind: c_int,
    count: *mut usize,
) -> c_int {
    const OP: &str = "singa_step_count";
    status(OP, || {
        // SAFETY: guaranteed by the caller.
        let (step, count) = unsafe { (at(OP, step)?, at_mut(OP, count)?) };
        *count = step.tensors(OP, kind)?.len();
        Ok(())
    })
}

/// Describes an argument, a result or a state.
///
/// # Safety
/// The pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn singa_step_describe(
    step: *const CStep,
    kind: c_int,
    index: usize,
    tensor: *mut CTensor,
) -> c_int {
    const OP: &str = "singa_step_describe";
    status(OP, || {
        // SAFETY: guaranteed by the caller.
        let (step, tensor) = unsafe { (at(OP, step)?, at_mut(OP, tensor)?) };
        *tensor = step.tensor(OP, kind, index)?.describe();
        Ok(())
    })
}

/// The index of an argument, a result or a state.
///
/// # Safety
/// The pointers are null or valid; `name` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn singa_step_find(
    step: *const CStep,
    kind: c_int,
    name: *const c_char,
    index: *mut usize,
) -> c_int {
    const OP: &str = "singa_step_find";
    status(OP, || {
        // SAFETY: guaranteed by the caller.
        let (step, name, index) = unsafe { (at(OP, step)?, text(OP, name)?, at_mut(OP, index)?) };
        *index = step.find(OP, kind, name)?;
        Ok(())
    })
}

/// Writes an argument.
///
/// # Safety
/// `step` is null or valid; `data` is null, or to so many bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn singa_step_bind(
    step: *mut CStep,
    argument: usize,
    data: *const c_void,
    count: usize,
) -> c_int {
    const OP: &str = "singa_step_bind";
    status(OP, || {
        // SAFETY: guaranteed by the caller.
        let (step, data) = unsafe { (at_mut(OP, step)?, bytes(OP, data, count)?) };
        step.step.bind(argument, data)
    })
}

/// Runs a step once.
///
/// # Safety
/// `step` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn singa_step_run(step: *mut CStep) -> c_int {
    const OP: &str = "singa_step_run";
    // SAFETY: guaranteed by the caller.
    status(OP, || unsafe { at_mut(OP, step) }?.step.run())
}

/// Copies a result or a state.
///
/// # Safety
/// `step` is null or valid; `data` is null, or to so many bytes that nothing else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn singa_step_read(
    step: *const CStep,
    kind: c_int,
    index: usize,
    data: *mut c_void,
    count: usize,
) -> c_int {
    const OP: &str = "singa_step_read";
    status(OP, || {
        crate::ensure!(!data.is_null() || count == 0, null(OP));
        // SAFETY: guaranteed by the caller; without bytes there may be no pointer.
        let (step, data) = unsafe {
            (
                at(OP, step)?,
                match count {
                    0 => &mut [][..],
                    _ => slice::from_raw_parts_mut(data.cast(), count),
                },
            )
        };
        step.read(OP, kind, index, data)
    })
}

/// Writes a state.
///
/// # Safety
/// As [`singa_step_bind`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn singa_step_write(
    step: *mut CStep,
    state: usize,
    data: *const c_void,
    count: usize,
) -> c_int {
    const OP: &str = "singa_step_write";
    status(OP, || {
        // SAFETY: guaranteed by the caller.
        let (step, data) = unsafe { (at_mut(OP, step)?, bytes(OP, data, count)?) };
        step.step.set_state(state, data)
    })
}

/// Writes a step to a file.
///
/// # Safety
/// `step` is null or valid; `path` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn singa_step_save(step: *const CStep, path: *const c_char) -> c_int {
    const OP: &str = "singa_step_save";
    status(OP, || {
        // SAFETY: guaranteed by the caller.
        let (step, path) = unsafe { (at(OP, step)?, text(OP, path)?) };
        step.step.save(path)
    })
}

#[cfg(test)]
mod tests;
