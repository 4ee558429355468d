//! Gather and scatter-add: copying rows by index, and adding them back.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;

use crate::device::team;
use crate::error::Result;
use crate::kernels::cpu::copy::indices::{Indices, indexed};
use crate::kernels::cpu::not_float;
use crate::kernels::cpu::simd::wide::{Float, gather as read, scatter};
use crate::kernels::cpu::strided::access;
use crate::kernels::cpu::strided::walk::{Walk, dims};
use crate::kernels::{Io, Kernel, Width};
use crate::ops::index::{Gather, GatherGrad, Places};
use crate::ops::{Family, Meta};

/// The number of elements of a row that are summed at a time.
const CHUNK: usize = 256;

/// Prepares (x, indices) -> y.
///
/// # Errors
/// Those of [`Gather::row_major`].
pub fn gather(op: &Gather, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let (axis, x, _) = op.row_major(io[0], io[2])?;
    let indices = Indices::new(op.name(), 1, Some(x.shape[axis]), io[1]);
    let (Split { outer, inner, .. }, step) = (Split::new(&x, axis..axis + 1), x.strides[axis]);
    Ok(by_size!(x.dtype.size(), T => indexed(indices, width, 0, move |io, entries| {
        let (count, length) = (entries.len(), inner.elements());
        team::ranges(outer.elements() * count, 1, width.0, &|mut rows, _| {
            while !rows.is_empty() {
                let (slice, first) = (place(&outer, rows.start / count), rows.start % count);
                let here = &entries[first..count.min(first + rows.len())];
                let from = io.input::<T>(0).wrapping_offset(slice);
                let to = io.output::<T>(0).wrapping_add(rows.start * length);
                // SAFETY: the entries are within the axis, and each row belongs to one thread.
                unsafe { copy_rows(from, here, step, &inner, to) };
                rows.start += here.len();
            }
        })
    })))
}

/// Copies the row of each entry into contiguous memory.
///
/// # Safety
/// The rows can be read, and as many can be written.
unsafe fn copy_rows<T: Copy>(
    from: *const T,
    entries: &[i64],
    step: isize,
    row: &Walk<1>,
    mut to: *mut T,
) {
    let (length, is_flat) = (row.elements(), row.is_flat());
    for &entry in entries {
        // SAFETY: by the caller's promise.
        unsafe {
            let from = from.offset(entry as isize * step);
            match (length, is_flat) {
                // A single element is not worth a call.
                (1, _) => *to = *from,
                (_, true) => access::copy(from, to, length),
                _ => row.copy(from, to),
            }
            to = to.add(length);
        }
    }
}

/// Prepares (dy, indices) -> dx, row-major; the indices replace one axis of dx by axes of dy.
///
/// # Errors
/// Those of [`GatherGrad::shape`]; [`crate::Error::DType`] for types that are not floats.
pub fn gather_grad(op: &GatherGrad, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let (_, axis) = op.shape(io[0], io[1])?;
    let (size, split) = (op.size, Split::new(io[0], axis..axis + io[1].shape.rank()));
    let indices = Indices::new(op.name(), 1, Some(size), io[1]);
    let room = indices.count() + size;
    crate::dispatch!(float io[0].dtype, T => {
        Ok(indexed(indices, width, room * size_of::<i64>(), move |io, entries| {
            // SAFETY: the scratch memory was requested.
            let room = unsafe { std::slice::from_raw_parts_mut(io.scratch::<i64>(), room) };
            let (ends, places) = room.split_at_mut(size);
            sort(entries, &split.middle, places, ends);
            team::ranges(split.outer.elements() * size, 1, width.0, &|range, _| {
                for row in range {
                    let (o, e) = (row / size, row % size);
                    let start = if e == 0 { 0 } else { ends[e - 1] };
                    let places = &places[start as usize..ends[e] as usize];
                    add_rows::<T>(io, place(&split.outer, o), places, &split.inner, row);
                }
            })
        }))
    }, else => not_float(op.name(), io[0]))
}

/// Prepares indices -> int64 positions, row-major.
pub fn places(op: &Places, io: &[&Meta], Width(width): Width) -> Arc<dyn Kernel> {
    let indices = Indices::new(op.name(), 0, op.size, io[0]).wrapping(op.wraps);
    Arc::new(Positions { indices, width })
}

struct Positions {
    indices: Indices,
    width: usize,
}

impl Kernel for Positions {
    fn check(&self, io: &Io) -> Result<()> {
        self.indices.check(io, self.width)
    }

    fn run(&self, io: &Io) -> Result<()> {
        self.check(io)?; // an error leaves the output as it was
        // SAFETY: the output has an element for each index, and shares no memory with them.
        unsafe { self.indices.write(io, self.width, || io.output(0)) }
    }
}

/// The dimensions of a tensor before, within and after a range of axes.
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

/// The offset of element `at` of a walk.
fn place(walk: &Walk<1>, at: usize) -> isize {
    walk.runs(at..at + 1).next().map_or(0, |([place], _)| place)
}

/// Stable counting sort of the rows' offsets by index: entry `e` has
/// `places[ends[e - 1]..ends[e]]`.
fn sort(indices: &[i64], rows: &Walk<1>, places: &mut [i64], ends: &mut [i64]) {
    ends.fill(0);
    indices.iter().for_each(|&e| ends[e as usize] += 1);
    let mut start = 0;
    for end in ends.iter_mut() {
        start += std::mem::replace(end, start);
    }
    for ([at], &e) in rows.offsets(0..rows.elements()).zip(indices) {
        let end = &mut ends[e as usize];
        places[*end as usize] = at as i64;
        *end += 1;
    }
}

/// Writes row `row` of dx: the sum of the rows of dy at `places`, offset by `from`.
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
                // SAFETY: the run is within dy.
                unsafe { read(io.input::<T>(0).offset(from + place as isize + at), step, to) };
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
