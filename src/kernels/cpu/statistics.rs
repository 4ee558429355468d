//! Inspecting the numbers of a tensor: whether they are finite, and their statistics.
#![allow(unsafe_code)]

use crate::dispatch;
use crate::dtype::Element;
use crate::error::finite::Statistics;
use crate::kernels::cpu::strided::walk::Walk;
use crate::view::Meta;

/// Whether every number of a tensor is finite; integers always are.
///
/// # Safety
/// `first` is the address of the first element of a tensor of this meta, which is not written
/// meanwhile.
pub unsafe fn is_finite(meta: &Meta, first: *const u8) -> bool {
    dispatch!(float meta.dtype, T => {
        // SAFETY: by the caller's promise.
        unsafe { values::<T>(meta, first.cast(), f64::is_finite) }
    }, else => true)
}

/// The statistics of a tensor's numbers, skipping broadcast repetitions.
///
/// # Safety
/// As [`is_finite`].
pub unsafe fn statistics(meta: &Meta, first: *const u8) -> Statistics {
    let (mut least, mut greatest) = (f64::INFINITY, f64::NEG_INFINITY);
    let (mut nans, mut infinities, mut sum, mut count) = (0, 0, 0.0, 0usize);
    let mut look = |value: f64| {
        match value {
            value if value.is_nan() => nans += 1,
            value if value.is_infinite() => infinities += 1,
            value => {
                (least, greatest) = (least.min(value), greatest.max(value));
                (sum, count) = (sum + value, count + 1);
            }
        }
        true
    };
    dispatch!(meta.dtype, T => {
        // SAFETY: by the caller's promise.
        unsafe { values::<T>(meta, first.cast(), &mut look) }
    });
    let (dtype, shape, mean) = (meta.dtype, meta.shape.clone(), sum / count as f64);
    Statistics { dtype, shape, nans, infinities, least, greatest, mean }
}

/// The numbers, without broadcast repetitions.
///
/// # Safety
/// As [`is_finite`]; the elements are of type `T`.
unsafe fn values<T: Element>(
    meta: &Meta,
    first: *const T,
    mut visit: impl FnMut(f64) -> bool,
) -> bool {
    let walk = Walk::without_repeats(meta);
    // SAFETY: by the caller's promise, and the walk stays within the tensor.
    walk.offsets(0..walk.elements()).all(|[at]| visit(unsafe { *first.offset(at) }.to_f64()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::kernels::testing::{Tensor, layouts};

    fn look(tensor: &mut Tensor) -> Statistics {
        let first = tensor.address().cast_const();
        // SAFETY: the tensor has the memory of its meta.
        let (is, found) =
            unsafe { (is_finite(&tensor.meta, first), statistics(&tensor.meta, first)) };
        assert_eq!(is, found.is_finite() || !tensor.meta.dtype.is_float());
        found
    }

    #[test]
    fn every_layout_and_float_type() {
        for dtype in [DType::Float32, DType::Float64, DType::Float16, DType::BFloat16] {
            for strides in layouts(&[2, 3]) {
                let values = [1.0, 2.0, f64::NAN, -4.0, f64::INFINITY, f64::NEG_INFINITY];
                let found = look(&mut Tensor::strided(dtype, &[2, 3], &strides, &values));
                assert_eq!((found.nans, found.infinities), (1, 2));
                assert_eq!((found.least, found.greatest), (-4.0, 2.0));
                assert!((found.mean + 1.0 / 3.0).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn integers_and_nothing_at_all_are_finite() {
        let found = look(&mut Tensor::strided(DType::Int32, &[3], &[1], &[1.0, -2.0, 4.0]));
        assert_eq!((found.least, found.greatest, found.mean), (-2.0, 4.0, 1.0));
        assert_eq!(
            found.to_string(),
            "int32 (3,): from -2.000000e0 to 4.000000e0, mean 1.000000e0"
        );
        let mut empty = Tensor::one(DType::Float32, f64::NAN);
        empty.meta.shape = [0].into();
        empty.meta.strides = smallvec::smallvec![1];
        assert!(look(&mut empty).to_string().ends_with("no finite numbers"));
    }
}
