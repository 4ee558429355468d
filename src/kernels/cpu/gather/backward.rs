//! Scatter-add: adds rows back to where they were copied from.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use super::{Indices, Split, place};
use crate::device::team;
use crate::error::Result;
use crate::kernels::cpu::walk::Walk;
use crate::kernels::cpu::wide::{Float, gather, scatter};
use crate::kernels::{Io, Kernel, Width};
use crate::ops::Meta;

/// The number of elements of a row that are summed at a time.
const CHUNK: usize = 256;

/// Prepares (dy, indices) -> dx, row-major; the indices replace one axis of dx, which has `size`
/// entries, by these axes of dy.
pub fn backward<T: Float>(
    indices: Indices,
    size: usize,
    dy: &Meta,
    axes: Range<usize>,
    width: Width,
) -> Arc<dyn Kernel> {
    let split = Split::new(dy, axes);
    Arc::new(Backward { indices, size, split, width, element: PhantomData::<fn() -> T> })
}

struct Backward<T> {
    indices: Indices,
    /// The number of entries of the indexed axis.
    size: usize,
    split: Split,
    width: Width,
    element: PhantomData<fn() -> T>,
}

impl<T> Backward<T> {
    /// The number of integers in the scratch memory.
    fn room(&self) -> usize {
        2 * self.indices.count() + self.size
    }
}

impl<T: Float> Kernel for Backward<T> {
    fn scratch(&self) -> usize {
        self.room() * size_of::<i64>()
    }

    fn check(&self, io: &Io) -> Result<()> {
        self.indices.each(io, |_| ())
    }

    fn run(&self, io: &Io) -> Result<()> {
        let (split, size) = (&self.split, self.size);
        // SAFETY: the scratch memory was requested.
        let all = unsafe { std::slice::from_raw_parts_mut(io.scratch::<i64>(), self.room()) };
        let (indices, rest) = all.split_at_mut(self.indices.count());
        let (places, ends) = rest.split_at_mut(indices.len());
        self.indices.read(io, indices)?;
        sort(indices, &split.middle, places, ends);
        team::parallel(self.width.0, &|part| {
            for row in team::share(split.outer.elements() * size, 1, self.width.0, part) {
                let (o, e) = (row / size, row % size);
                let start = if e == 0 { 0 } else { ends[e - 1] };
                let places = &places[start as usize..ends[e] as usize];
                add_rows::<T>(io, place(&split.outer, o), places, &split.inner, row);
            }
        })
    }
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
