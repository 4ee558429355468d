//! Elements that have to be whole numbers: labels and indices.
#![allow(unsafe_code)]

use crate::dtype::{DType, Element};

/// Reads the element at a place, or answers what else than an int64 is there. The element can be
/// read.
pub type Read = unsafe fn(*const u8, isize) -> Result<i64, f64>;

/// The one for elements of a dtype.
pub fn reader(dtype: DType) -> Read {
    crate::dispatch!(dtype, T => read::<T>)
}

/// # Safety
/// The element can be read.
unsafe fn read<T: Element>(from: *const u8, at: isize) -> Result<i64, f64> {
    // SAFETY: by the caller's promise.
    let element = unsafe { *from.cast::<T>().offset(at) };
    let value = element.to_f64();
    // What is too large for an int64 would be held within its range.
    let is_whole = value.fract() == 0.0 && value.abs() < i64::MAX as f64;
    if T::DTYPE.is_float() && !is_whole { Err(value) } else { Ok(element.to_i64()) }
}
