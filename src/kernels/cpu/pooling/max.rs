//! The maximum of each window, and its gradient.
#![allow(unsafe_code)]

use std::sync::Arc;

use super::super::access::Access;
use super::super::isa::{self, Body, Isa, Level};
use super::super::not_float;
use super::super::scan::Scan;
use super::super::space;
use super::super::tile::Sum;
use super::super::wide::Wide;
use super::rows::Rows;
use super::{Plan, Windows};
use crate::device::team;
use crate::dtype::Element;
use crate::error::{Error, Result};
use crate::kernels::{Io, Kernel, Width, checked, kernel};
use crate::ops::pooling::{MaxPool2d, MaxPool2dGrad};
use crate::ops::{Family, Meta};

/// The kernel for `io` = x, y, index. NaN compares greater than everything; the first of equals
/// wins.
///
/// # Errors
/// [`Error::DType`] for bool.
pub fn max(op: &MaxPool2d, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let windows = Windows::new(&op.window, op.name(), [io[0].shape[2], io[0].shape[3]])?;
    let plan = Plan::new(windows, io[0], io[1], width);
    let index = Rows::new(io[2], plan.all_channels);
    crate::dispatch!(number io[0].dtype, T => Ok(forward(plan, index, Access::of::<T>())),
        else => Err(Error::dtype(op.name(), [io[0].dtype], "a float or integer dtype")))
}

fn forward<A: Sum>(plan: Plan, index_rows: Rows, access: Access<A>) -> Arc<dyn Kernel> {
    let lengths = [plan.from.len(), plan.to.len(), plan.to.len()];
    let space = space::bytes::<A>([lengths[0], lengths[1]]);
    let own = space + space::bytes::<i32>([lengths[2]]);
    kernel(plan.parts * own, move |io| {
        team::parallel(plan.parts, &|part| {
            // SAFETY: each part has its own scratch memory.
            let (seen, best, index) = unsafe {
                let at = io.scratch::<u8>().add(part * own);
                let [seen, best] = space::arrays(at, [lengths[0], lengths[1]]);
                let [index] = space::arrays(at.add(space), [lengths[2]]);
                (seen, best, index)
            };
            let (plan, index_rows) = (&plan, &index_rows);
            let rows = Forward { plan, access, index_rows, io, part, seen, best, index };
            isa::run(Isa::active(), rows);
        })
    })
}

struct Forward<'a, A> {
    plan: &'a Plan,
    access: Access<A>,
    index_rows: &'a Rows,
    io: &'a Io<'a>,
    part: usize,
    seen: &'a mut [A],
    best: &'a mut [A],
    index: &'a mut [i32],
}

impl<A: Sum> Body for Forward<'_, A> {
    type Output = ();

    #[inline(always)]
    fn run<L: Level>(self) {
        let Forward { plan, access, index_rows, io, part, seen, best, index } = self;
        for (plane, row) in plan.rows(part) {
            best.fill(A::LOWEST);
            index.fill(-1);
            for down in plan.windows.taps(0, row) {
                let image_row = (plane, plan.image_row(row, down));
                // SAFETY: input 0 is the image.
                let seen = unsafe { plan.from.read(access, io.input(0), image_row, seen) };
                for right in 0..plan.windows.kernel[1] {
                    let tap = (down * plan.windows.kernel[1] + right) as i32;
                    plan.windows.seen(right, plan.to.lanes(), |at, first, step| {
                        let window = at.clone();
                        raise(&mut best[window], &mut index[at], &seen[first..], step, tap);
                    });
                }
            }
            // SAFETY: outputs 0 and 1 are y and the index, and the row belongs to this part.
            unsafe {
                plan.to.write(access, io.output(0), (plane, row), best);
                index_rows.write_index(io, (plane, row), index);
            }
        }
    }
}

/// Updates the maximum where an element is greater.
#[inline(always)]
fn raise<S: Sum>(best: &mut [S], index: &mut [i32], seen: &[S], step: usize, tap: i32) {
    let one = |best: &mut S, index: &mut i32, x: S| {
        // Only NaN differs from itself.
        #[allow(clippy::eq_op)]
        let is_greater = (x > *best) | ((x != x) & (*best == *best)) | (*index < 0);
        *best = if is_greater { x } else { *best };
        *index = if is_greater { tap } else { *index };
    };
    let places = best.iter_mut().zip(index);
    if step == 1 {
        places.zip(seen).for_each(|((best, index), x)| one(best, index, *x));
    } else {
        places.zip(seen.iter().step_by(step)).for_each(|((best, index), x)| one(best, index, *x));
    }
}

/// The kernel for `io` = dy, index, dx.
///
/// # Errors
/// [`Error::DType`] for types that are not floats.
pub fn max_grad(op: &MaxPool2dGrad, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let windows = Windows::new(&op.window, op.name(), op.size)?;
    let plan = Plan::new(windows, io[0], io[2], width);
    let index = Rows::new(io[1], plan.all_channels);
    let kernel = crate::dispatch!(float io[0].dtype,
        T => backward(plan, index, Access::of::<T>()),
        else => return not_float(op.name(), io[0]));
    let (scan, taps) = (Scan::new(1, io[1], width), windows.kernel[0] * windows.kernel[1]);
    Ok(crate::dispatch!(int io[1].dtype,
        T => checked(move |io| check_index(scan.largest(io, |i: T| i.to_i64() as u32)?, taps), kernel),
        else => return Err(Error::dtype(op.name(), [io[1].dtype], "an integer index"))))
}

/// Rejects positions outside the window, whose gradients would be lost. Negative ones compare as
/// the largest.
fn check_index(largest: u32, taps: usize) -> Result<()> {
    let (op, index) = ("max_pool2d_grad".into(), largest as i32 as i64);
    crate::ensure!((largest as usize) < taps, Error::Index { op, index, size: taps });
    Ok(())
}

fn backward<A: Wide + Sum>(plan: Plan, index_rows: Rows, access: Access<A>) -> Arc<dyn Kernel> {
    let lengths = [plan.from.len(), plan.to.len(), index_rows.len()];
    let space = space::bytes::<A>([lengths[0], lengths[1]]);
    let own = space + space::bytes::<i32>([lengths[2]]);
    kernel(plan.parts * own, move |io| {
        team::parallel(plan.parts, &|part| {
            // SAFETY: each part has its own scratch memory.
            let (dy, dx, index) = unsafe {
                let at = io.scratch::<u8>().add(part * own);
                let [dy, dx] = space::arrays(at, [lengths[0], lengths[1]]);
                let [index] = space::arrays(at.add(space), [lengths[2]]);
                (dy, dx, index)
            };
            let (plan, index_rows) = (&plan, &index_rows);
            let rows = Backward { plan, access, index_rows, io, part, dy, dx, index };
            isa::run(Isa::active(), rows);
        })
    })
}

struct Backward<'a, A> {
    plan: &'a Plan,
    access: Access<A>,
    index_rows: &'a Rows,
    io: &'a Io<'a>,
    part: usize,
    dy: &'a mut [A],
    dx: &'a mut [A],
    index: &'a mut [i32],
}

impl<A: Wide + Sum> Body for Backward<'_, A> {
    type Output = ();

    #[inline(always)]
    fn run<L: Level>(self) {
        let Backward { plan, access, index_rows, io, part, dy, dx, index } = self;
        for (plane, row) in plan.rows(part) {
            dx.fill(Default::default());
            for window in plan.windows.covering(0, row) {
                // SAFETY: inputs 0 and 1 are dy and the index.
                let dy = unsafe {
                    index_rows.read_index(io, (plane, window), index);
                    plan.from.read(access, io.input(0), (plane, window), dy)
                };
                let down = row + plan.windows.padding[0] - window * plan.windows.stride[0];
                for right in 0..plan.windows.kernel[1] {
                    let tap = (down * plan.windows.kernel[1] + right) as i32;
                    plan.windows.seen(right, plan.to.lanes(), |at, first, step| {
                        let window = at.clone();
                        add_where(&mut dx[first..], step, &dy[window], &index[at], tap);
                    });
                }
            }
            // SAFETY: output 0 is the gradient, and the row belongs to this part.
            unsafe { plan.to.write(access, io.output(0), (plane, row), dx) };
        }
    }
}

/// Adds dy to the positions of the maxima.
#[inline(always)]
fn add_where<A: Wide>(dx: &mut [A], step: usize, dy: &[A], index: &[i32], tap: i32) {
    let one = |dx: &mut A, dy: A, index: i32| {
        *dx = *dx + if index == tap { dy } else { A::default() };
    };
    let from = dy.iter().zip(index);
    if step == 1 {
        dx.iter_mut().zip(from).for_each(|(dx, (dy, index))| one(dx, *dy, *index));
    } else {
        dx.iter_mut().step_by(step).zip(from).for_each(|(dx, (dy, i))| one(dx, *dy, *i));
    }
}
