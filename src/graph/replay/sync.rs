//! The atomics that workers synchronise through: those of the standard library, or loom's in its
//! model-checking tests, where it explores the orders in which threads can observe changes.

#[cfg(all(test, loom))]
pub(super) use loom::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
#[cfg(not(all(test, loom)))]
pub(super) use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// Sets counters that no other thread is using, with one copy.
#[cfg(not(all(test, loom)))]
pub(super) fn set(counters: &mut [AtomicU32], values: &[u32]) {
    let (to, count) = (counters.as_mut_ptr().cast::<u32>(), counters.len());
    // SAFETY: an atomic has the layout of its integer, and the `&mut` borrow is exclusive.
    unsafe { std::slice::from_raw_parts_mut(to, count) }.copy_from_slice(values);
}

/// The same for loom's counters, which are more than integers.
#[cfg(all(test, loom))]
pub(super) fn set(counters: &mut [AtomicU32], values: &[u32]) {
    let pairs = counters.iter().zip(values);
    pairs.for_each(|(counter, &value)| counter.store(value, Ordering::Relaxed));
}

/// A value in cache lines of its own, padded to two lines because processors prefetch in pairs.
#[repr(align(128))]
pub(super) struct Apart<T>(pub(super) T);
