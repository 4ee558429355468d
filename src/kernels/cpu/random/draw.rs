//! The sampler for each distribution and dtype, and the generator's advance.

use std::sync::Arc;

use super::{Bernoulli, Normal, Uniform, Unit, prepare};
use crate::dtype::{Bool, Element};
use crate::error::Result;
use crate::kernels::cpu::not_float;
use crate::kernels::cpu::simd::wide::{Float, Wide};
use crate::kernels::{Kernel, Width, kernel};
use crate::ops::random::{Distribution, Random};
use crate::ops::{Family, Meta, Real};

/// Prepares (state) -> random numbers.
///
/// # Errors
/// [`crate::Error::DType`] for numbers other than floats, unless they are truth values.
pub fn draw(op: &Random, to: &Meta, width: Width) -> Result<Arc<dyn Kernel>> {
    let n = to.numel();
    match op.dist {
        Distribution::Bernoulli { p: Real(p) } => Ok(crate::dispatch!(op.dtype,
            T => prepare::<T, _>(n, op.offset, Bernoulli::new(p), numbers, width))),
        _ => crate::dispatch!(float op.dtype, T => Ok(floats::<T>(op, n, width)),
            else => not_float(op.name(), to)),
    }
}

/// Prepares filling `n` floats.
fn floats<T: Float<Wide: Unit>>(op: &Random, n: usize, width: Width) -> Arc<dyn Kernel> {
    match op.dist {
        Distribution::Uniform { low: Real(low), high: Real(high) } => {
            let uniform = Uniform::<T::Wide>::new(T::DTYPE, low, high);
            prepare::<T, _>(n, op.offset, uniform, T::narrow_slice, width)
        }
        Distribution::Normal { mean: Real(mean), std: Real(std) } => {
            let normal = Normal { mean: T::Wide::of(mean), std: T::Wide::of(std) };
            prepare::<T, _>(n, op.offset, normal, T::narrow_slice, width)
        }
        Distribution::Bernoulli { p: Real(p) } => {
            prepare::<T, _>(n, op.offset, Bernoulli::new(p), numbers, width)
        }
    }
}

/// Truth values as elements.
fn numbers<T: Element>(from: &[Bool], to: &mut [T]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to = T::from_i64(from.to_i64()));
}

/// Prepares moving a generator's position forward by this many blocks.
pub fn advance(by: u64) -> Arc<dyn Kernel> {
    let by = by as i64;
    kernel(0, move |io| {
        // SAFETY: the state is two int64.
        #[allow(unsafe_code)]
        let state = unsafe { io.write::<i64>(0, 2) };
        state[1] = state[1].wrapping_add(by);
        Ok(())
    })
}
