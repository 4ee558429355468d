//! Sums of long rows, cut into segments that are added up side by side once the totals before them
//! are known (Blelloch, Prefix sums and their applications, 1990). Products are not, as that of a
//! segment could leave the range of float64 where none of the row's does.
#![allow(unsafe_code)]

use std::ops::Range;

use super::{Along, CHUNK, Join, Lines, ROWS, Total, advance};
use crate::device::team;
use crate::error::Result;
use crate::kernels::cpu::simd::isa::{Body, Isa, Level, Narrow, Reach};
use crate::kernels::cpu::space;
use crate::kernels::{Io, Width};

/// The number of elements of a segment, which depends on nothing.
const SEGMENT: usize = 16 * CHUNK;
/// With as many rows, there is enough to do side by side.
const MANY: usize = 2 * ROWS;
/// The number of independent partial totals of a segment.
const LANES: usize = 16;

/// The segments of all rows.
pub(super) struct Segments {
    /// Where each begins, and its number of elements.
    all: Vec<([isize; 2], usize)>,
    /// Up to `ROWS` of one length each.
    groups: Vec<Range<usize>>,
    /// The number of segments of a row.
    each: usize,
}

impl Segments {
    /// Those of a few rows that are long.
    pub(super) fn of<A>(lines: &Lines<A>) -> Option<Segments> {
        let (rows, extent) = (lines.others.elements(), lines.axis.extent);
        let each = extent.div_ceil(SEGMENT);
        if rows == 0 || rows >= MANY || each < 4 || lines.columns.is_some() {
            return None;
        }
        let mut all = Vec::with_capacity(rows * each);
        for row in lines.others.offsets(0..rows) {
            for start in (0..extent).step_by(SEGMENT) {
                let at = std::array::from_fn(|t| row[t] + start as isize * lines.axis.strides[t]);
                all.push((at, SEGMENT.min(extent - start)));
            }
        }
        let mut groups: Vec<Range<usize>> = Vec::new();
        for (i, (_, length)) in all.iter().enumerate() {
            match groups.last_mut() {
                Some(group) if group.len() < ROWS && all[group.start].1 == *length => {
                    group.end += 1
                }
                _ => groups.push(i..i + 1),
            }
        }
        Some(Segments { all, groups, each })
    }

    /// Bytes of the segments' totals.
    pub(super) fn scratch<A>(&self) -> usize {
        space::bytes::<A>([self.all.len()])
    }

    pub(super) fn run<A: Total>(
        &self,
        lines: &Lines<A>,
        io: &Io,
        Width(width): Width,
        join: impl Join,
    ) -> Result<()> {
        let along = &Along { lines, io, along: &lines.axis };
        team::ranges(self.all.len(), 1, width, &|range, _| {
            Narrow::run(Isa::active(), Totals { segments: self, along, range, join });
        })?;
        for row in 0..self.all.len() / self.each {
            let mut before = join.start();
            for i in row * self.each..(row + 1) * self.each {
                // SAFETY: there is a total for each segment, and no thread runs.
                let total = unsafe { &mut *io.scratch::<A>().add(i) };
                before = join.join(before, std::mem::replace(total, before));
            }
        }
        team::ranges(self.groups.len(), 1, width, &|range, _| {
            Narrow::run(Isa::active(), Scans { segments: self, along, range, join });
        })
    }
}

/// The totals of a thread's segments.
struct Totals<'a, A, J> {
    segments: &'a Segments,
    along: &'a Along<'a, A>,
    range: Range<usize>,
    join: J,
}

impl<A: Total, J: Join> Body for Totals<'_, A, J> {
    type Output = ();

    #[inline(always)]
    fn run<L: Level>(self) {
        let mut held = [A::default(); CHUNK];
        for i in self.range.clone() {
            let (at, extent) = self.segments.all[i];
            let mut lanes = [self.join.start::<A>(); LANES];
            for start in (0..extent).step_by(CHUNK) {
                let held = &mut held[..CHUNK.min(extent - start)];
                self.along.load(self.along.place(at, start), held);
                let (full, last) = held.as_chunks::<LANES>();
                for chunk in full {
                    (0..LANES).for_each(|l| lanes[l] = self.join.join(lanes[l], chunk[l]));
                }
                let ends = lanes.iter_mut().zip(last);
                ends.for_each(|(lane, &value)| *lane = self.join.join(*lane, value));
            }
            let all = lanes.into_iter().fold(self.join.start(), |a, b| self.join.join(a, b));
            // SAFETY: there is a total for each segment, which belongs to one thread.
            unsafe { self.along.io.scratch::<A>().add(i).write(all) };
        }
    }
}

/// The results of a thread's groups.
struct Scans<'a, A, J> {
    segments: &'a Segments,
    along: &'a Along<'a, A>,
    range: Range<usize>,
    join: J,
}

impl<A: Total, J: Join> Body for Scans<'_, A, J> {
    type Output = ();

    #[inline(always)]
    fn run<L: Level>(self) {
        let mut held = [[A::default(); CHUNK]; ROWS];
        for group in &self.segments.groups[self.range.clone()] {
            let mut places = [[0; 2]; ROWS];
            let mut totals = [self.join.start::<A>(); ROWS];
            let segments = &self.segments.all[group.clone()];
            for (i, (at, _)) in segments.iter().enumerate() {
                places[i] = *at;
                // SAFETY: there is a total for each segment; none is written any more.
                totals[i] = unsafe { *self.along.io.scratch::<A>().add(group.start + i) };
            }
            let extent = segments[0].1;
            advance(self.along, self.join, &places[..group.len()], extent, totals, &mut held);
        }
    }
}
