//! Elements taken from, and added at, places along an axis that differ from row to row.
#![allow(unsafe_code)]

use std::sync::Arc;

use super::lines::{Line, Lines};
use crate::device::team;
use crate::error::Result;
use crate::kernels::cpu::not_float;
use crate::kernels::cpu::simd::wide::{Float, scatter};
use crate::kernels::{Io, Kernel, Width, kernel};
use crate::ops::index::{GatherElements, GatherElementsGrad};
use crate::ops::{Family, Meta};

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
        lines.each(width, &|line: Line| {
            let (y, x) = (io.output::<T>(0), io.input::<T>(0));
            // SAFETY: the places are within the axis, and each element belongs to one thread.
            line.each(io, |at, from| unsafe { *y.offset(at) = *x.offset(from) });
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
            lines.each(width, &|line: Line| {
                let (sums, dy) = (sums::<T>(io), io.input::<T>(0));
                // SAFETY: the places are within the axis; what is added to one element is in lines
                // that belong to one thread.
                line.each(io, |at, to| unsafe { *sums.offset(to) += (*dy.offset(at)).widen() });
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
