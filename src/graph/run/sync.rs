//! What workers meet at: atomics of the standard library, or in the model checker's tests those of
//! loom, which tries the orders in which threads can see them change.

#[cfg(all(test, loom))]
pub(super) use loom::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
#[cfg(not(all(test, loom)))]
pub(super) use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// Sets counters that no other thread sees now, by one copy.
#[cfg(not(all(test, loom)))]
pub(super) fn set(counters: &mut [AtomicU32], values: &[u32]) {
    let (to, count) = (counters.as_mut_ptr().cast::<u32>(), counters.len());
    // SAFETY: an atomic has the layout of its integer, and nobody else may use these meanwhile.
    unsafe { std::slice::from_raw_parts_mut(to, count) }.copy_from_slice(values);
}

/// The same for counters that are more than integers.
#[cfg(all(test, loom))]
pub(super) fn set(counters: &mut [AtomicU32], values: &[u32]) {
    let pairs = counters.iter().zip(values);
    pairs.for_each(|(counter, &value)| counter.store(value, Ordering::Relaxed));
}

/// A value in cache lines of its own: processors fetch them by twos.
#[repr(align(128))]
pub(super) struct Apart<T>(pub(super) T);
