//! Elements taken from, and added at, places along an axis that differ from row to row.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;

use crate::device::team;
use crate::error::{Error, Result};
use crate::kernels::cpu::not_float;
use crate::kernels::cpu::simd::wide::{Float, scatter};
use crate::kernels::cpu::strided::walk::{Dim, Walk, dims};
use crate::kernels::{Io, Kernel, Width, kernel};
use crate::ops::index::{GatherElements, GatherElementsGrad};
use crate::ops::{Family, Meta};

/// The number of adjacent rows that a thread takes at a time, where the axis is not innermost.
const ROWS: usize = 256;
/// Fewer rows than this are taken one after the other, along the axis.
const FEW: usize = 16;
/// The fewest places that a thread checks at a time.
const GRAIN: usize = 8192;

/// Prepares (x, places) -> y.
///
/// # Errors
/// Those of [`Shape::axis`](crate::shape::Shape::axis).
pub fn gather_elements(
    op: &GatherElements,
    io: &[&Meta],
    Width(width): Width,
) -> Result<Arc<dyn Kernel>> {
    let axis = io[0].shape.axis(op.name(), op.axis)?;
    let lines = Lines::new(op.name(), [io[2], io[1], io[0]], axis);
    Ok(by_size!(io[0].dtype.size(), T => kernel(0, move |io| {
        lines.check(io, width)?;
        lines.each(io, width, || {
            let (y, x) = (io.output::<T>(0), io.input::<T>(0));
            // SAFETY: the places are within the axis, and each element belongs to one thread.
            move |at, from| unsafe { *y.offset(at) = *x.offset(from) }
        })
    })))
}

/// Prepares (dy, places) -> dx.
///
/// # Errors
/// As [`gather_elements`]; [`crate::Error::DType`] for types that are not floats.
pub fn gather_elements_grad(
    op: &GatherElementsGrad,
    io: &[&Meta],
    Width(width): Width,
) -> Result<Arc<dyn Kernel>> {
    let (dy, dx) = (io[0], io[2]);
    let axis = dy.shape.axis(op.name(), op.axis)?;
    let (lines, count) = (Lines::new(op.name(), [dy, io[1], dx], axis), dx.numel());
    crate::dispatch!(float dy.dtype, T => {
        type Sum = <T as Float>::Wide;
        let room = if T::IS_WIDE { 0 } else { count * size_of::<Sum>() };
        Ok(kernel(room, move |io| {
            lines.check(io, width)?;
            team::ranges(count, 64, width, &|range, _| {
                // SAFETY: there are as many sums, and the parts are disjoint.
                unsafe { sums::<T>(io).add(range.start).write_bytes(0, range.len()) };
            })?;
            lines.each(io, width, || {
                let (sums, dy) = (sums::<T>(io), io.input::<T>(0));
                // SAFETY: the places are within the axis; what is added to one element is in rows
                // that belong to one thread.
                move |at, to| unsafe { *sums.offset(to) += (*dy.offset(at)).widen() }
            })?;
            if T::IS_WIDE { Ok(()) } else { narrow::<T>(io, count, width) }
        }))
    }, else => not_float(op.name(), dy))
}

/// Where the sums are: in dx, or in scratch memory for half types, whose sums are in float32.
#[inline(always)]
fn sums<T: Float>(io: &Io) -> *mut T::Wide {
    if T::IS_WIDE { io.output(0) } else { io.scratch() }
}

/// Rounds all sums into dx.
fn narrow<T: Float>(io: &Io, count: usize, width: usize) -> Result<()> {
    team::ranges(count, 64, width, &|range, _| {
        // SAFETY: all sums are there, dx has as many elements, and the parts are disjoint.
        unsafe {
            let from = std::slice::from_raw_parts(sums::<T>(io).add(range.start), range.len());
            scatter(from, io.output::<T>(0).add(range.start), 1);
        }
    })
}

/// Checks that all places, which input 1 holds, are within an axis.
///
/// # Errors
/// [`Error::Index`].
pub fn check_places(
    name: &'static str,
    places: &Walk<1>,
    size: usize,
    io: &Io,
    width: usize,
) -> Result<()> {
    team::each_range(places.elements(), GRAIN, width, |range, _| {
        check_part(name, places, range, size, io)
    })
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
        let all = (0..n as isize).map(|i| {
            // SAFETY: the run is within the places.
            unsafe { *from.offset(at + i * step) }
        });
        // A negative one is greater than any extent.
        let outside = |place: i64| place as u64 >= size as u64;
        if all.clone().fold(false, |any, place| any | outside(place)) {
            let first = all.clone().find(|&place| outside(place)).unwrap_or(0);
            return Err(Error::Index { op: name.into(), index: first, size });
        }
    }
    Ok(())
}

/// The rows along the axis of a result or its gradient, of the places, and of what these are in.
struct Lines {
    name: &'static str,
    /// The dimensions before the axis, the axis of the places, and those after it.
    outer: Walk<3>,
    axis: Dim<3>,
    inner: Walk<3>,
    /// The extent of the axis that places are in.
    size: usize,
    places: Walk<1>,
}

impl Lines {
    fn new(name: &'static str, metas: [&Meta; 3], axis: usize) -> Lines {
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

    fn check(&self, io: &Io, width: usize) -> Result<()> {
        check_places(self.name, &self.places, self.size, io, width)
    }

    /// Passes the offsets of each element and of its counterpart at its place, in the order of the
    /// axis, to what `visitor` makes for each thread.
    fn each<V: FnMut(isize, isize)>(
        &self,
        io: &Io,
        width: usize,
        visitor: impl Fn() -> V + Sync,
    ) -> Result<()> {
        let rows = self.inner.elements();
        if rows == 1 {
            return self.each_outer(io, width, visitor);
        }
        let blocks = rows.div_ceil(ROWS);
        team::ranges(self.outer.elements() * blocks, 1, width, &|range, _| {
            let (places, mut visit) = (io.input(1), visitor());
            for task in range {
                let (o, first) = (task / blocks, task % blocks * ROWS);
                let block = first..rows.min(first + ROWS);
                for (start, _) in self.outer.runs(o..o + 1) {
                    for (at, n) in self.inner.runs(block.clone()) {
                        self.rows([0, 1, 2].map(|t| start[t] + at[t]), n, places, &mut visit);
                    }
                }
            }
        })
    }

    /// The same where nothing is after the axis.
    fn each_outer<V: FnMut(isize, isize)>(
        &self,
        io: &Io,
        width: usize,
        visitor: impl Fn() -> V + Sync,
    ) -> Result<()> {
        let step = self.outer.inner().strides;
        let grain = (ROWS / self.axis.extent.max(1)).max(1);
        team::ranges(self.outer.elements(), grain, width, &|range, _| {
            let (places, mut visit) = (io.input(1), visitor());
            for (start, n) in self.outer.runs(range) {
                for row in 0..n as isize {
                    let at = [0, 1, 2].map(|t| start[t] + row * step[t]);
                    self.rows(at, 1, places, &mut visit);
                }
            }
        })
    }

    /// `count` adjacent rows, of which the first begins at these offsets.
    #[inline(always)]
    fn rows(
        &self,
        at: [isize; 3],
        count: usize,
        places: *const i64,
        visit: &mut impl FnMut(isize, isize),
    ) {
        let (inner, Dim { extent, strides: along }) = (self.inner.inner().strides, self.axis);
        let steps = |steps: [isize; 3], n: isize| [0, 1, 2].map(|t| at[t] + n * steps[t]);
        let mut line = |[at, place, to]: [isize; 3], [step, place_step, to_step]: [isize; 3], n| {
            for i in 0..n as isize {
                // SAFETY: the place is one of the places.
                let index = unsafe { *places.offset(place + i * place_step) } as isize;
                visit(at + i * step, to + i * to_step + index * along[2]);
            }
        };
        let [step, place_step, _] = along;
        if count < FEW {
            (0..count as isize).for_each(|r| line(steps(inner, r), [step, place_step, 0], extent));
        } else {
            let from = [step, place_step, 0];
            (0..extent as isize).for_each(|i| line(steps(from, i), inner, count));
        }
    }
}
