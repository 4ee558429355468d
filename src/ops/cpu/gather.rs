//! Copying rows by index, and adding them back.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;

use super::walk::{Walk, dims};
use super::wide::{Float, gather, scatter};
use crate::device::team;
use crate::dtype::Element;
use crate::error::{Error, Result};
use crate::ops::{Io, Kernel, Meta, Width, kernel};

/// Elements of a row that are added up at a time.
const CHUNK: usize = 256;

/// Indices as a kernel finds them in input 1.
pub struct Layout {
    name: &'static str,
    /// How many entries the indexed axis has.
    size: usize,
    walk: Walk<1>,
    /// Reads `n` indices at places `at + i * step`.
    read: unsafe fn(*const u8, isize, isize, &mut [i64]),
}

impl Layout {
    /// `indices` into an axis of `size` entries, for errors of operation `name`.
    pub fn new(name: &'static str, size: usize, indices: &Meta) -> Self {
        let read = crate::dispatch!(indices.dtype, T => read_as::<T>);
        Layout { name, size, walk: Walk::new(dims([indices])), read }
    }

    fn count(&self) -> usize {
        self.walk.elements()
    }

    /// Writes the indices row-major, counted from the front.
    fn normalised(&self, io: &Io, to: &mut [i64]) -> Result<()> {
        let (step, mut done) = (self.walk.inner().strides[0], 0);
        for ([at], n) in self.walk.runs(0..self.count()) {
            // SAFETY: the run lies within the indices.
            unsafe { (self.read)(io.input(1), at, step, &mut to[done..done + n]) };
            done += n;
        }
        let size = self.size as i64;
        for index in to {
            let given = *index;
            *index += if given < 0 { size } else { 0 };
            let inside = (0..size).contains(index);
            let op = || self.name.into();
            crate::ensure!(inside, Error::Index { op: op(), index: given, size: self.size });
        }
        Ok(())
    }
}

/// # Safety
/// The elements at places `at + i * step` can be read.
unsafe fn read_as<T: Element>(from: *const u8, at: isize, step: isize, to: &mut [i64]) {
    for (i, to) in to.iter_mut().enumerate() {
        // SAFETY: by the caller's promise.
        *to = unsafe { *from.cast::<T>().offset(at + i as isize * step) }.to_i64();
    }
}

/// The dimensions of a tensor before, of, and after some neighbouring axes.
struct Split {
    outer: Walk<1>,
    middle: Walk<1>,
    inner: Walk<1>,
}

impl Split {
    fn new(meta: &Meta, axes: Range<usize>) -> Split {
        let dims = dims([meta]);
        let walk = |range: Range<usize>| Walk::new(dims[range].iter().copied());
        let (start, end) = (axes.start, axes.end);
        Split { outer: walk(0..start), middle: walk(axes), inner: walk(end..dims.len()) }
    }
}

/// Place `at` of a walk.
fn place(walk: &Walk<1>, at: usize) -> isize {
    walk.runs(at..at + 1).next().map_or(0, |([place], _)| place)
}

/// Prepares (x, indices) -> y, row-major.
pub fn forward(layout: Layout, x: &Meta, axis: usize, width: Width) -> Arc<dyn Kernel> {
    match x.dtype.size() {
        1 => copy::<u8>(layout, x, axis, width),
        2 => copy::<u16>(layout, x, axis, width),
        4 => copy::<u32>(layout, x, axis, width),
        _ => copy::<u64>(layout, x, axis, width),
    }
}

/// As [`forward`], of elements as large as `T`.
fn copy<T: Copy + Send + Sync + 'static>(
    layout: Layout,
    x: &Meta,
    axis: usize,
    width: Width,
) -> Arc<dyn Kernel> {
    let split = Split::new(x, axis..axis + 1);
    let step = x.strides[axis];
    let count = layout.count();
    kernel(count * size_of::<i64>(), move |io| {
        // SAFETY: the scratch was asked for.
        let indices = unsafe { std::slice::from_raw_parts_mut(io.scratch::<i64>(), count) };
        layout.normalised(io, indices)?;
        let (indices, length) = (&*indices, split.inner.elements());
        team::parallel(width.0, &|part| {
            let mut rows = team::share(split.outer.elements() * count, 1, width.0, part);
            while !rows.is_empty() {
                let (o, first) = (rows.start / count, rows.start % count);
                let here = first..count.min(first + rows.len());
                let from = place(&split.outer, o);
                for (row, &index) in (rows.start..).zip(&indices[here.clone()]) {
                    // SAFETY: the index is within the axis; rows belong to one thread each.
                    unsafe {
                        let x = io.input::<T>(0).offset(from + index as isize * step);
                        copy_row(x, &split.inner, io.output::<T>(0).add(row * length));
                    }
                }
                rows.start += here.len();
            }
        })
    })
}

/// Copies the elements of a walk side by side.
///
/// # Safety
/// They can be read, and as many written.
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

/// Prepares (dy, indices) -> dx, row-major; the indices stand on these axes of dy.
pub fn backward<T: Float>(
    layout: Layout,
    dy: &Meta,
    axes: Range<usize>,
    width: Width,
) -> Arc<dyn Kernel> {
    let split = Split::new(dy, axes);
    let (count, size) = (layout.count(), layout.size);
    let scratch = 2 * count + size;
    kernel(scratch * size_of::<i64>(), move |io| {
        // SAFETY: the scratch was asked for.
        let all = unsafe { std::slice::from_raw_parts_mut(io.scratch::<i64>(), scratch) };
        let (indices, rest) = all.split_at_mut(count);
        let (places, ends) = rest.split_at_mut(count);
        layout.normalised(io, indices)?;
        sort(indices, &split.middle, places, ends);
        team::parallel(width.0, &|part| {
            for row in team::share(split.outer.elements() * size, 1, width.0, part) {
                let (o, e) = (row / size, row % size);
                let start = if e == 0 { 0 } else { ends[e - 1] };
                let places = &places[start as usize..ends[e] as usize];
                add_rows::<T>(io, place(&split.outer, o), places, &split.inner, row);
            }
        })
    })
}

/// Sorts the places of rows by their index, keeping the order of equal ones: entry `e` has
/// `places[ends[e - 1]..ends[e]]`.
fn sort(indices: &[i64], rows: &Walk<1>, places: &mut [i64], ends: &mut [i64]) {
    ends.fill(0);
    indices.iter().for_each(|&e| ends[e as usize] += 1);
    let mut start = 0;
    for end in ends.iter_mut() {
        start += std::mem::replace(end, start);
    }
    let (step, mut done) = (rows.inner().strides[0], 0);
    for ([at], n) in rows.runs(0..rows.elements()) {
        for i in 0..n as isize {
            let end = &mut ends[indices[done] as usize];
            places[*end as usize] = (at + i * step) as i64;
            *end += 1;
            done += 1;
        }
    }
}

/// Writes row `row` of dx: the sum of the rows of dy at `places`, each `from` further on.
fn add_rows<T: Float>(io: &Io, from: isize, places: &[i64], inner: &Walk<1>, row: usize) {
    let length = inner.elements();
    let step = inner.inner().strides[0];
    for start in (0..length).step_by(CHUNK) {
        let chunk = start..length.min(start + CHUNK);
        let (mut sum, mut values) = ([T::Wide::default(); CHUNK], [T::Wide::default(); CHUNK]);
        for &place in places {
            let mut done = 0;
            for ([at], n) in inner.runs(chunk.clone()) {
                let to = &mut values[done..done + n];
                // SAFETY: the run lies within dy.
                unsafe { gather(io.input::<T>(0).offset(from + place as isize + at), step, to) };
                done += n;
            }
            sum.iter_mut().zip(&values[..done]).for_each(|(sum, &value)| *sum = *sum + value);
        }
        // SAFETY: dx has this row, which belongs to one thread.
        let to = unsafe { io.output::<T>(0).add(row * length + start) };
        // SAFETY: as above.
        unsafe { scatter(&sum[..chunk.len()], to, 1) };
    }
}
