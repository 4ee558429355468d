//! Elements that must be integers: labels and indices.
#![allow(unsafe_code)]

use crate::dtype::{DType, Element};

/// Reads the element at an offset, or returns as an error the value that is not an int64. The
/// element must be readable.
pub type Read = unsafe fn(*const u8, isize) -> Result<i64, f64>;

/// The reader for elements of a dtype.
pub fn reader(dtype: DType) -> Read {
    crate::dispatch!(dtype, T => read::<T>)
}

/// # Safety
/// The element can be read.
unsafe fn read<T: Element>(from: *const u8, at: isize) -> Result<i64, f64> {
    // SAFETY: by the caller's promise.
    let element = unsafe { *from.cast::<T>().offset(at) };
    let value = element.to_f64();
    // Values too large for an int64 would be clamped to its range.
    let is_whole = value.fract() == 0.0 && value.abs() < i64::MAX as f64;
    if T::DTYPE.is_float() && !is_whole { Err(value) } else { Ok(element.to_i64()) }
}
