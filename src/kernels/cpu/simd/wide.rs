//! The types that floats compute in: float16 and bfloat16 compute in float32.
#![allow(unsafe_code)]

use half::{bf16, f16, slice::HalfFloatSliceExt};

use crate::dtype::Element;
pub use crate::kernels::cpu::simd::math::Float as Wide;

/// A floating-point element type.
pub trait Float: Element {
    /// The type it computes in.
    type Wide: Float<Wide = Self::Wide> + Wide;
    /// Whether that is the element type itself.
    const IS_WIDE: bool = false;
    /// Converts exactly.
    fn widen(self) -> Self::Wide;
    /// Rounds to the nearest.
    fn narrow(value: Self::Wide) -> Self;
    /// `to[i] = from[i]`, exact; equal lengths.
    #[inline(always)]
    fn widen_slice(from: &[Self], to: &mut [Self::Wide]) {
        to.iter_mut().zip(from).for_each(|(to, from)| *to = from.widen());
    }
    /// `to[i] = from[i]`, rounded; equal lengths.
    #[inline(always)]
    fn narrow_slice(from: &[Self::Wide], to: &mut [Self]) {
        to.iter_mut().zip(from).for_each(|(to, from)| *to = Self::narrow(*from));
    }
}

macro_rules! wide {
    ($($rust:ty),*) => {$(
        impl Float for $rust {
            type Wide = $rust;
            const IS_WIDE: bool = true;
            #[inline(always)]
            fn widen(self) -> Self { self }
            #[inline(always)]
            fn narrow(value: Self) -> Self { value }
        }
    )*};
}
wide!(f32, f64);

macro_rules! narrow {
    ($($rust:ty),*) => {$(
        impl Float for $rust {
            type Wide = f32;
            #[inline(always)]
            fn widen(self) -> f32 { self.to_f32() }
            #[inline(always)]
            fn narrow(value: f32) -> Self { <$rust>::from_f32(value) }
            fn widen_slice(from: &[Self], to: &mut [f32]) { from.convert_to_f32_slice(to) }
            fn narrow_slice(from: &[f32], to: &mut [Self]) { to.convert_from_f32_slice(from) }
        }
    )*};
}
narrow!(f16, bf16);

/// `to[i]` = the element `i * stride` positions after `from`, widened.
///
/// # Safety
/// All these elements can be read.
#[inline(always)]
pub unsafe fn gather<T: Float>(from: *const T, stride: isize, to: &mut [T::Wide]) {
    if stride == 1 {
        // SAFETY: by the caller's promise.
        return T::widen_slice(unsafe { std::slice::from_raw_parts(from, to.len()) }, to);
    }
    for (i, to) in to.iter_mut().enumerate() {
        // SAFETY: by the caller's promise.
        *to = unsafe { *from.offset(i as isize * stride) }.widen();
    }
}

/// The element `i * stride` positions after `to` = `from[i]`, rounded.
///
/// # Safety
/// All these elements can be written.
#[inline(always)]
pub unsafe fn scatter<T: Float>(from: &[T::Wide], to: *mut T, stride: isize) {
    if stride == 1 {
        // SAFETY: by the caller's promise.
        return T::narrow_slice(from, unsafe { std::slice::from_raw_parts_mut(to, from.len()) });
    }
    for (i, from) in from.iter().enumerate() {
        // SAFETY: by the caller's promise.
        unsafe { *to.offset(i as isize * stride) = T::narrow(*from) };
    }
}
