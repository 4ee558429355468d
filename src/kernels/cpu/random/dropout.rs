//! Dropout: masks drawn and applied in one pass.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;

use crate::device::team;
use crate::dtype::Bool;
use crate::error::Result;
use crate::kernels::cpu::matmul::tile::Sum;
use crate::kernels::cpu::not_float;
use crate::kernels::cpu::random::philox::State;
use crate::kernels::cpu::random::{Bernoulli, MOST, sample};
use crate::kernels::cpu::simd::wide::Wide;
use crate::kernels::cpu::strided::access::{Access, Run};
use crate::kernels::cpu::strided::walk::Walk;
use crate::kernels::{Io, Kernel, Width, kernel};
use crate::ops::random::{Dropout, DropoutGrad};
use crate::ops::{Family, Meta};

/// The minimum number of groups of [`MOST`] elements per thread.
const GRAIN: usize = 16;

/// Prepares (x, state) -> (y, mask), both outputs dense in one order.
///
/// # Errors
/// [`crate::Error::DType`] for types that are not floats.
pub fn dropout(op: &Dropout, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    crate::dispatch!(float io[0].dtype,
        T => Ok(forward(Access::of::<T>(), io, op, width)),
        else => not_float(op.name(), io[0]))
}

/// Prepares (dy, mask) -> dx, dense.
///
/// # Errors
/// As [`dropout`].
pub fn dropout_grad(op: &DropoutGrad, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    crate::dispatch!(float io[0].dtype, T => Ok(backward(Access::of::<T>(), io, op, width)),
        else => not_float(op.name(), io[0]))
}

fn forward<A: Wide + Sum>(
    access: Access<A>,
    io: &[&Meta],
    op: &Dropout,
    width: Width,
) -> Arc<dyn Kernel> {
    let pass = Masking { access, walk: Walk::in_memory_order([io[2], io[0]]), ratio: op.ratio.0 };
    let (keep, offset) = (Bernoulli::new(1.0 - op.ratio.0), op.offset);
    kernel(0, move |io| {
        let state = State::read(io, 1, offset);
        pass.each_group(width, |group| {
            let keep = sample(keep, state, group.start / MOST);
            // SAFETY: the mask is dense in the walk's order, and this part belongs to this thread.
            let mask = unsafe {
                let first = io.output::<Bool>(1).add(group.start);
                std::slice::from_raw_parts_mut(first, group.len())
            };
            mask.copy_from_slice(&keep[..group.len()]);
            pass.apply(io, group, &keep);
        })
    })
}

fn backward<A: Wide + Sum>(
    access: Access<A>,
    io: &[&Meta],
    op: &DropoutGrad,
    width: Width,
) -> Arc<dyn Kernel> {
    let walk = Walk::in_memory_order([io[2], io[0], io[1]]);
    let pass = Masking { access, walk, ratio: op.ratio.0 };
    kernel(0, move |io| {
        pass.each_group(width, |group| {
            let keep = pass.mask(io, group.clone());
            pass.apply(io, group, &keep);
        })
    })
}

/// The output and the inputs.
struct Masking<A, const N: usize> {
    access: Access<A>,
    walk: Walk<N>,
    /// The probability that an element is dropped.
    ratio: f64,
}

impl<A: Wide + Sum, const N: usize> Masking<A, N> {
    /// Calls `body` for groups of up to [`MOST`] elements on `width` threads.
    fn each_group(&self, width: Width, body: impl Fn(Range<usize>) + Sync) -> Result<()> {
        team::ranges(self.walk.elements(), MOST * GRAIN, width.0, &|range, _| {
            let groups = range.clone().step_by(MOST);
            groups.for_each(|start| body(start..range.end.min(start + MOST)));
        })
    }

    /// Writes the elements of input 0 scaled to output 0, or zero where they are not kept.
    fn apply(&self, io: &Io, group: Range<usize>, keep: &[Bool; MOST]) {
        let (mut values, n) = ([A::ZERO; MOST], group.len());
        // SAFETY: the group is within the input.
        unsafe { self.access.collect(io.input(0), (&self.walk, 1, 0), group.clone(), &mut values) };
        let scale = A::of(1.0 / (1.0 - self.ratio));
        for (value, keep) in values.iter_mut().zip(keep) {
            *value = if keep.get() { *value * scale } else { A::ZERO };
        }
        let to = Run { start: group.start as isize, step: 1, length: n };
        // SAFETY: the output is dense in the walk's order, and this part belongs to this thread.
        unsafe { self.access.store(&values[..n], io.output(0), to) };
    }
}

impl<A> Masking<A, 3> {
    /// The mask of a group, from input 1.
    fn mask(&self, io: &Io, group: Range<usize>) -> [Bool; MOST] {
        let (mut keep, mut done) = ([Bool(0); MOST], 0);
        let step = self.walk.inner().strides[2];
        for ([_, _, at], n) in self.walk.runs(group) {
            let (from, to) = (io.input::<Bool>(1).wrapping_offset(at), &mut keep[done..done + n]);
            // SAFETY: the run is within the mask.
            unsafe {
                match step {
                    1 => to.copy_from_slice(std::slice::from_raw_parts(from, n)),
                    _ => (0..n).for_each(|i| to[i] = *from.offset(i as isize * step)),
                }
            }
            done += n;
        }
        keep
    }
}
