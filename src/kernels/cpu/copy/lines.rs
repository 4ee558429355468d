//! The lines along an axis of tensors, of which one holds places in another.
#![allow(unsafe_code)]

use std::ops::Range;

use super::indices::are_within;
use crate::device::team;
use crate::error::{Error, Result};
use crate::kernels::Io;
use crate::kernels::cpu::strided::walk::{Dim, Walk, dims};
use crate::ops::Meta;

/// The number of adjacent lines that a thread takes at a time, where the axis is not innermost.
const LINES: usize = 256;
/// Fewer lines than this are taken one after the other, along the axis.
const FEW: usize = 16;
/// The fewest places that a thread checks at a time.
const GRAIN: usize = 8192;

/// The lines along an axis of a tensor, of the places of its elements, and of what these are in.
pub struct Lines {
    name: &'static str,
    /// The dimensions before the axis, the axis of the places, and those after it.
    outer: Walk<3>,
    axis: Dim<3>,
    inner: Walk<3>,
    /// The extent of the axis that places are in.
    size: usize,
    places: Walk<1>,
}

/// Elements of a tensor that are so many elements apart, their places, and where what these are in
/// begins.
pub struct Line {
    at: [isize; 3],
    steps: [isize; 3],
    count: usize,
    /// The step from one place to the next.
    along: isize,
}

impl Line {
    /// Passes the offsets of each element and of its counterpart at its place, in order. The places
    /// are input 1.
    #[inline(always)]
    pub fn each(&self, io: &Io, mut visit: impl FnMut(isize, isize)) {
        let Line { at: [at, place, to], steps: [step, place_step, to_step], count, along } = *self;
        if count == 0 || (step, place_step, to_step) != (1, 0, 1) {
            return self.each_apart(io, visit);
        }
        // SAFETY: the line has a place, which can be read.
        let to = to + unsafe { *io.input::<i64>(1).offset(place) } as isize * along;
        (0..count as isize).for_each(|i| visit(at + i, to + i));
    }

    /// The same, of less code: no sooner where adjacent elements share a place.
    #[inline(always)]
    pub fn each_apart(&self, io: &Io, mut visit: impl FnMut(isize, isize)) {
        let Line { at: [at, place, to], steps: [step, place_step, to_step], count, along } = *self;
        let places = io.input::<i64>(1).wrapping_offset(place);
        for i in 0..count as isize {
            // SAFETY: the places of a line can be read.
            let index = unsafe { *places.offset(i * place_step) } as isize;
            visit(at + i * step, to + i * to_step + index * along);
        }
    }
}

/// What is done with a line.
pub type Visit<'a> = &'a (dyn Fn(Line) + Sync);

impl Lines {
    /// The lines of a tensor, of places of its shape, and of what these are in, whose other extents
    /// are at least as large.
    pub fn new(name: &'static str, metas: [&Meta; 3], axis: usize) -> Lines {
        let dims_of = dims(metas);
        let walk = |range: Range<usize>| Walk::new(dims_of[range].iter().copied());
        Lines {
            name,
            outer: walk(0..axis),
            axis: dims_of[axis],
            inner: walk(axis + 1..dims_of.len()),
            size: metas[2].shape[axis],
            places: Walk::without_repeats(metas[1]),
        }
    }

    /// Checks that all places are within the axis.
    ///
    /// # Errors
    /// [`Error::Index`].
    pub fn check(&self, io: &Io, width: usize) -> Result<()> {
        team::each_range(self.places.elements(), GRAIN, width, |range, _| {
            check_part(self.name, &self.places, range, self.size, io)
        })
    }

    /// Passes all elements in lines, those that share a line along the axis in its order and to one
    /// thread.
    ///
    /// # Errors
    /// Those of the threads.
    pub fn each(&self, width: usize, visit: Visit) -> Result<()> {
        let rows = self.inner.elements();
        if rows == 1 {
            return self.each_outer(width, visit);
        }
        let blocks = rows.div_ceil(LINES);
        team::ranges(self.outer.elements() * blocks, 1, width, &|range, _| {
            for task in range {
                let (o, first) = (task / blocks, task % blocks * LINES);
                let block = first..rows.min(first + LINES);
                for (start, _) in self.outer.runs(o..o + 1) {
                    for (at, n) in self.inner.runs(block.clone()) {
                        self.lines([0, 1, 2].map(|t| start[t] + at[t]), n, visit);
                    }
                }
            }
        })
    }

    /// The same where nothing is after the axis.
    fn each_outer(&self, width: usize, visit: Visit) -> Result<()> {
        let step = self.outer.inner().strides;
        let grain = (LINES / self.axis.extent.max(1)).max(1);
        team::ranges(self.outer.elements(), grain, width, &|range, _| {
            for (start, n) in self.outer.runs(range) {
                for row in 0..n as isize {
                    self.lines([0, 1, 2].map(|t| start[t] + row * step[t]), 1, visit);
                }
            }
        })
    }

    /// `count` adjacent lines along the axis, of which the first begins at these offsets: one after
    /// the other, or, of many, the first element of each, then the second of each.
    fn lines(&self, at: [isize; 3], count: usize, visit: Visit) {
        let (inner, Dim { extent, strides }) = (self.inner.inner().strides, self.axis);
        // What places are in does not step along the axis by itself.
        let (own, along) = ([strides[0], strides[1], 0], strides[2]);
        let moved = |by: [isize; 3], n: isize| [0, 1, 2].map(|t| at[t] + n * by[t]);
        if count < FEW {
            (0..count as isize).for_each(|r| {
                visit(Line { at: moved(inner, r), steps: own, count: extent, along });
            });
        } else {
            (0..extent as isize).for_each(|i| {
                visit(Line { at: moved(own, i), steps: inner, count, along });
            });
        }
    }
}

fn check_part(
    name: &'static str,
    places: &Walk<1>,
    range: Range<usize>,
    size: usize,
    io: &Io,
) -> Result<()> {
    let (from, step) = (io.input::<i64>(1), places.inner().strides[0]);
    for ([at], n) in places.runs(range) {
        // SAFETY: the run is within the places.
        let run = || unsafe { std::slice::from_raw_parts(from.offset(at), n) };
        if step == 1 && are_within(run(), size) {
            continue;
        }
        // SAFETY: as above.
        let mut all = (0..n as isize).map(|i| unsafe { *from.offset(at + i * step) });
        // A negative one is greater than any extent.
        if let Some(index) = all.find(|&place| place as u64 >= size as u64) {
            return Err(Error::Index { op: name.into(), index, size });
        }
    }
    Ok(())
}
