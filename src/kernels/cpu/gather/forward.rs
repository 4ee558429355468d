//! Copying rows by index.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::sync::Arc;

use super::{Indices, Split, place};
use crate::device::team;
use crate::error::Result;
use crate::kernels::cpu::walk::Walk;
use crate::kernels::{Io, Kernel, Width};
use crate::ops::Meta;

/// Prepares (x, indices) -> y, row-major.
pub fn forward(indices: Indices, x: &Meta, axis: usize, width: Width) -> Arc<dyn Kernel> {
    match x.dtype.size() {
        1 => copying::<u8>(indices, x, axis, width),
        2 => copying::<u16>(indices, x, axis, width),
        4 => copying::<u32>(indices, x, axis, width),
        _ => copying::<u64>(indices, x, axis, width),
    }
}

/// As [`forward`], for elements of the size of `T`.
fn copying<T: Copy + 'static>(
    indices: Indices,
    x: &Meta,
    axis: usize,
    width: Width,
) -> Arc<dyn Kernel> {
    let (split, step) = (Split::new(x, axis..axis + 1), x.strides[axis]);
    Arc::new(Forward { indices, split, step, width, element: PhantomData::<fn() -> T> })
}

/// The kernel for elements of the size of `T`.
struct Forward<T> {
    indices: Indices,
    split: Split,
    /// Stride of the indexed axis.
    step: isize,
    width: Width,
    element: PhantomData<fn() -> T>,
}

impl<T: Copy + 'static> Kernel for Forward<T> {
    fn scratch(&self) -> usize {
        self.indices.count() * size_of::<i64>()
    }

    fn check(&self, io: &Io) -> Result<()> {
        self.indices.each(io, |_| ())
    }

    fn run(&self, io: &Io) -> Result<()> {
        let count = self.indices.count();
        // SAFETY: the scratch memory was requested.
        let indices = unsafe { std::slice::from_raw_parts_mut(io.scratch::<i64>(), count) };
        self.indices.read(io, indices)?;
        let (indices, rows) = (&*indices, self.split.outer.elements() * count);
        team::parallel(self.width.0, &|part| {
            let mut rows = team::share(rows, 1, self.width.0, part);
            while !rows.is_empty() {
                let (o, first) = (rows.start / count, rows.start % count);
                let here = first..count.min(first + rows.len());
                self.rows(io, o, &indices[here.clone()], rows.start);
                rows.start += here.len();
            }
        })
    }
}

impl<T: Copy> Forward<T> {
    /// Copies the rows of these entries of slice `outer` to the rows from `row` on.
    fn rows(&self, io: &Io, outer: usize, entries: &[i64], row: usize) {
        let (from, length) = (place(&self.split.outer, outer), self.split.inner.elements());
        for (row, &entry) in (row..).zip(entries) {
            // SAFETY: the entry is within the axis, and each row belongs to one thread.
            unsafe {
                let x = io.input::<T>(0).offset(from + entry as isize * self.step);
                copy_row(x, &self.split.inner, io.output::<T>(0).add(row * length));
            }
        }
    }
}

/// Copies the elements of a walk into contiguous memory.
///
/// # Safety
/// The elements can be read, and as many can be written.
unsafe fn copy_row<T: Copy>(from: *const T, walk: &Walk<1>, mut to: *mut T) {
    let inner = walk.inner();
    if inner.extent == walk.elements() && inner.strides[0] == 1 {
        // SAFETY: by the caller's promise.
        return unsafe { to.copy_from_nonoverlapping(from, inner.extent) };
    }
    for ([at], n) in walk.runs(0..walk.elements()) {
        for i in 0..n as isize {
            // SAFETY: by the caller's promise.
            unsafe {
                *to = *from.offset(at + i * inner.strides[0]);
                to = to.add(1);
            }
        }
    }
}
