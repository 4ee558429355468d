//! The mean of each window, and its gradient.
#![allow(unsafe_code)]

use std::sync::Arc;

use super::super::access::Access;
use super::super::isa::{self, Body, Isa, Level};
use super::super::not_float;
use super::super::space;
use super::super::tile::Sum;
use super::super::wide::Wide;
use super::{Plan, Windows};
use crate::device::team;
use crate::error::Result;
use crate::kernels::{Io, Kernel, Width, kernel};
use crate::ops::pooling::{AvgPool2d, AvgPool2dGrad};
use crate::ops::{Family, Meta};

/// Windows with more columns than this are summed row by row first, which rounds less.
const LONG: usize = 8;

/// The divisor of each window's sum: the product of both directions' entries.
#[derive(Clone, Debug)]
struct Counts([Vec<usize>; 2]);

impl Counts {
    fn new(windows: &Windows, include_padding: bool) -> Counts {
        let count = |d: usize, window: usize| match include_padding {
            true => windows.kernel[d],
            false => windows.taps(d, window).len(),
        };
        Counts([0, 1].map(|d| (0..windows.output[d]).map(|w| count(d, w)).collect()))
    }

    /// Divides a row of windows with `lanes` channels.
    #[inline(always)]
    fn divide<A: Wide>(&self, row: usize, lanes: usize, values: &mut [A]) {
        for (values, across) in values.chunks_exact_mut(lanes).zip(&self.0[1]) {
            let count = A::from_f64((self.0[0][row] * across) as f64);
            values.iter_mut().for_each(|value| *value = *value / count);
        }
    }
}

/// The kernel for `io` = x, y.
///
/// # Errors
/// [`crate::Error::DType`] for types that are not floats.
pub fn average(op: &AvgPool2d, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let windows = Windows::new(&op.window, op.name(), [io[0].shape[2], io[0].shape[3]])?;
    let plan = Plan::new(windows, io[0], io[1], width);
    let counts = Counts::new(&windows, op.count_include_pad);
    crate::dispatch!(float io[0].dtype, T => Ok(prepare(plan, counts, Access::of::<T>(), true)),
        else => not_float(op.name(), io[0]))
}

/// The kernel for `io` = dy, dx.
///
/// # Errors
/// [`crate::Error::DType`] for types that are not floats.
pub fn average_grad(op: &AvgPool2dGrad, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let windows = Windows::new(&op.window, op.name(), op.size)?;
    let plan = Plan::new(windows, io[0], io[1], width);
    let counts = Counts::new(&windows, op.count_include_pad);
    crate::dispatch!(float io[0].dtype, T => Ok(prepare(plan, counts, Access::of::<T>(), false)),
        else => not_float(op.name(), io[0]))
}

fn prepare<A: Wide + Sum>(
    plan: Plan,
    counts: Counts,
    access: Access<A>,
    forward: bool,
) -> Arc<dyn Kernel> {
    let lengths = [plan.from.len(), plan.to.len(), plan.to.len()];
    let own = space::bytes::<A>(lengths);
    kernel(plan.parts * own, move |io| {
        team::parallel(plan.parts, &|part| {
            // SAFETY: each part has its own scratch memory.
            let space = unsafe { space::arrays(io.scratch::<u8>().add(part * own), lengths) };
            let rows = RowsOf { plan: &plan, access, counts: &counts, io, part, space };
            match forward {
                true => isa::run(Isa::active(), Forward(rows)),
                false => isa::run(Isa::active(), Backward(rows)),
            }
        })
    })
}

struct RowsOf<'a, A> {
    plan: &'a Plan,
    access: Access<A>,
    counts: &'a Counts,
    io: &'a Io<'a>,
    part: usize,
    /// A row of the input, one of the output, and one of partial sums.
    space: [&'a mut [A]; 3],
}

struct Forward<'a, A>(RowsOf<'a, A>);

impl<A: Wide + Sum> Body for Forward<'_, A> {
    type Output = ();

    #[inline(always)]
    fn run<L: Level>(self) {
        let RowsOf { plan, access, counts, io, part, space: [seen, total, partial] } = self.0;
        let (windows, lanes) = (&plan.windows, plan.to.lanes());
        let is_long = windows.kernel[1] > LONG;
        for (plane, row) in plan.rows(part) {
            total.fill(A::default());
            for down in windows.taps(0, row) {
                let image_row = (plane, plan.image_row(row, down));
                // SAFETY: input 0 is the image.
                let seen = unsafe { plan.from.read(access, io.input(0), image_row, seen) };
                let sums = if is_long { &mut *partial } else { &mut *total };
                if is_long {
                    sums.fill(A::default());
                }
                for right in 0..windows.kernel[1] {
                    windows.seen(right, lanes, |at, first, step| {
                        add(&mut sums[at], 1, &seen[first..], step);
                    });
                }
                if is_long {
                    add(total, 1, partial, 1);
                }
            }
            counts.divide(row, lanes, total);
            // SAFETY: output 0 is the result, and the row belongs to this part.
            unsafe { plan.to.write(access, io.output(0), (plane, row), total) };
        }
    }
}

struct Backward<'a, A>(RowsOf<'a, A>);

impl<A: Wide + Sum> Body for Backward<'_, A> {
    type Output = ();

    #[inline(always)]
    fn run<L: Level>(self) {
        let RowsOf { plan, access, counts, io, part, space: [buffer, dx, _] } = self.0;
        let (windows, lanes) = (&plan.windows, plan.to.lanes());
        for (plane, row) in plan.rows(part) {
            dx.fill(A::default());
            for window in windows.covering(0, row) {
                // SAFETY: input 0 is dy.
                unsafe { plan.from.copy(access, io.input(0), (plane, window), buffer) };
                counts.divide(window, lanes, buffer);
                for right in 0..windows.kernel[1] {
                    windows.seen(right, lanes, |at, first, step| {
                        add(&mut dx[first..], step, &buffer[at], 1);
                    });
                }
            }
            // SAFETY: output 0 is the gradient, and the row belongs to this part.
            unsafe { plan.to.write(access, io.output(0), (plane, row), dx) };
        }
    }
}

/// `to[i * to_step] += from[i * step]` while both are within their slices.
#[inline(always)]
fn add<A: Wide>(to: &mut [A], to_step: usize, from: &[A], step: usize) {
    if to_step == 1 && step == 1 {
        to.iter_mut().zip(from).for_each(|(to, from)| *to = *to + *from);
    } else {
        let from = from.iter().step_by(step);
        to.iter_mut().step_by(to_step).zip(from).for_each(|(to, from)| *to = *to + *from);
    }
}
