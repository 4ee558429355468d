//! Elements of one type, read and written as the type they compute in. Loops over the latter need
//! not be compiled for each of the former.
#![allow(unsafe_code)]

use std::ops::Range;

use crate::device::ALIGNMENT;
use crate::kernels::cpu::matmul::tile::{Factor, Sum};
use crate::kernels::cpu::strided::walk::Walk;

/// Copies elements that do not overlap.
///
/// A large copy to where no cache line begins is made of small ones: the instruction with which
/// some versions of `memcpy` copy more than 2 KiB then takes ten times as long on AMD's Zen.
///
/// # Safety
/// As many elements can be read and written.
pub unsafe fn copy<T: Copy>(from: *const T, to: *mut T, count: usize) {
    const PIECE: usize = 512;
    let (bytes, is_aligned) = (count * size_of::<T>(), (to as usize).is_multiple_of(ALIGNMENT));
    let piece = if is_aligned || bytes < 4 * PIECE { bytes.max(1) } else { PIECE };
    let (from, to) = (from.cast::<u8>(), to.cast::<u8>());
    for at in (0..bytes).step_by(piece) {
        // SAFETY: by the caller's promise.
        unsafe { to.add(at).copy_from_nonoverlapping(from.add(at), piece.min(bytes - at)) };
    }
}

/// Reads and writes elements that compute in type `A`. Addresses are those of a tensor's first
/// element; starts and steps are in elements.
#[derive(Clone, Copy, Debug)]
pub struct Access<A> {
    size: isize,
    /// Whether the elements are of type `A`.
    is_direct: bool,
    gather: unsafe fn(*const u8, isize, &mut [A]),
    scatter: unsafe fn(&[A], *mut u8, isize),
}

/// Evenly spaced elements in memory.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// Offset of the first, counted from the tensor's first element.
    pub start: isize,
    /// Distance between consecutive elements.
    pub step: isize,
    /// The number of elements.
    pub length: usize,
}

/// # Safety
/// As for [`Factor::gather`].
pub(in crate::kernels::cpu) unsafe fn gather<T: Factor>(
    from: *const u8,
    step: isize,
    to: &mut [T::Sum],
) {
    // SAFETY: by the caller's promise.
    unsafe { T::gather(from.cast(), step, to) }
}

/// # Safety
/// As for [`Factor::scatter`].
unsafe fn scatter<T: Factor>(from: &[T::Sum], to: *mut u8, step: isize) {
    // SAFETY: by the caller's promise.
    unsafe { T::scatter(from, to.cast(), step) }
}

impl<A: Sum> Access<A> {
    /// For elements of type `T`.
    pub fn of<T: Factor<Sum = A>>() -> Self {
        Access {
            size: size_of::<T>() as isize,
            is_direct: T::DTYPE == A::DTYPE,
            gather: gather::<T>,
            scatter: scatter::<T>,
        }
    }

    /// Copies a run into `to`, which has the same length.
    ///
    /// # Safety
    /// The run can be read.
    #[inline(always)]
    pub unsafe fn copy(&self, at: *const u8, run: Run, to: &mut [A]) {
        // SAFETY: by the caller's promise.
        unsafe { (self.gather)(at.wrapping_offset(run.start * self.size), run.step, to) };
    }

    /// The element at an offset.
    ///
    /// # Safety
    /// It can be read.
    pub unsafe fn get(&self, at: *const u8, start: isize) -> A {
        let mut element = [A::LOWEST];
        // SAFETY: by the caller's promise.
        unsafe { self.copy(at, Run { start, step: 1, length: 1 }, &mut element) };
        element[0]
    }

    /// Copies the elements `range` of tensor `t` of a walk, each `base` further on.
    ///
    /// # Safety
    /// The elements can be read.
    #[inline(always)]
    pub unsafe fn collect<const N: usize>(
        &self,
        at: *const u8,
        (walk, t, base): (&Walk<N>, usize, isize),
        range: Range<usize>,
        to: &mut [A],
    ) {
        let (step, mut done) = (walk.inner().strides[t], 0);
        for (start, length) in walk.runs(range) {
            let run = Run { start: base + start[t], step, length };
            // SAFETY: by the caller's promise.
            unsafe { self.copy(at, run, &mut to[done..done + length]) };
            done += length;
        }
    }

    /// A run: in place if it can be read there, otherwise copied into `buffer`, which must be large
    /// enough.
    ///
    /// # Safety
    /// The run can be read.
    #[inline(always)]
    pub unsafe fn read<'a>(&self, at: *const u8, run: Run, buffer: &'a mut [A]) -> &'a [A] {
        if self.is_direct && run.step == 1 {
            let at = at.cast::<A>().wrapping_offset(run.start);
            // SAFETY: by the caller's promise.
            return unsafe { std::slice::from_raw_parts(at, run.length) };
        }
        let to = &mut buffer[..run.length];
        // SAFETY: by the caller's promise.
        unsafe { self.copy(at, run, to) };
        to
    }

    /// Writes a run from `from`, which has the same length.
    ///
    /// # Safety
    /// The run can be written, and nothing else accesses it.
    #[inline(always)]
    pub unsafe fn store(&self, from: &[A], at: *mut u8, run: Run) {
        // SAFETY: by the caller's promise.
        unsafe { (self.scatter)(from, at.wrapping_offset(run.start * self.size), run.step) };
    }

    /// Lets `fill` write a run: in place if that is allowed and possible, otherwise through `buffer`,
    /// which must be large enough.
    ///
    /// # Safety
    /// The run can be written, and nothing else accesses it.
    #[inline(always)]
    pub unsafe fn write(
        &self,
        at: *mut u8,
        run: Run,
        (buffer, in_place): (&mut [A], bool),
        fill: impl FnOnce(&mut [A]),
    ) {
        let in_place = in_place && self.is_direct && run.step == 1;
        let first = at.cast::<A>().wrapping_offset(run.start);
        // SAFETY: by the caller's promise; `A` is a plain number.
        let there = || unsafe { std::slice::from_raw_parts_mut(first, run.length) };
        let to = if in_place { there() } else { &mut buffer[..run.length] };
        // Called in one place, so that it is inlined and compiled for the caller's instruction set.
        fill(to);
        if !in_place {
            // SAFETY: by the caller's promise.
            unsafe { self.store(to, at, run) };
        }
    }
}
