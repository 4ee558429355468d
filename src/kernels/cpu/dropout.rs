//! Dropout: masks drawn and applied in one pass.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;

use super::not_float;
use super::philox::State;
use super::random::{Bernoulli, MOST, sample};
use super::walk::Walk;
use super::wide::{Float, Wide, gather};
use crate::device::team;
use crate::dtype::Bool;
use crate::error::Result;
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
        T => Ok(forward::<T>(io, op.ratio.0, op.offset, width)),
        else => not_float(op.name(), io[0]))
}

/// Prepares (dy, mask) -> dx, dense.
///
/// # Errors
/// As [`dropout`].
pub fn dropout_grad(op: &DropoutGrad, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    crate::dispatch!(float io[0].dtype, T => Ok(backward::<T>(io, op.ratio.0, width)),
        else => not_float(op.name(), io[0]))
}

/// As [`dropout`], from block `offset` of the generator on.
fn forward<T: Float>(io: &[&Meta], ratio: f64, offset: u64, width: Width) -> Arc<dyn Kernel> {
    let pass = Pass { walk: Walk::in_memory_order([io[2], io[0]]), scale: 1.0 / (1.0 - ratio) };
    let keep = Bernoulli::new(1.0 - ratio);
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
            pass.apply::<T>(io, group, &keep);
        })
    })
}

fn backward<T: Float>(io: &[&Meta], ratio: f64, width: Width) -> Arc<dyn Kernel> {
    let walk = Walk::in_memory_order([io[2], io[0], io[1]]);
    let pass = Pass { walk, scale: 1.0 / (1.0 - ratio) };
    kernel(0, move |io| {
        pass.each_group(width, |group| {
            let keep = pass.mask(io, group.clone());
            pass.apply::<T>(io, group, &keep);
        })
    })
}

/// The layout of output and inputs, and the factor that scales kept elements.
struct Pass<const N: usize> {
    walk: Walk<N>,
    scale: f64,
}

impl<const N: usize> Pass<N> {
    /// Calls `body` for groups of up to [`MOST`] elements on `width` threads.
    fn each_group(&self, width: Width, body: impl Fn(Range<usize>) + Sync) -> Result<()> {
        team::parallel(width.0, &|part| {
            let range = team::share(self.walk.elements(), MOST * GRAIN, width.0, part);
            let groups = range.clone().step_by(MOST);
            groups.for_each(|start| body(start..range.end.min(start + MOST)));
        })
    }

    /// Writes the elements of input 0 scaled to output 0, or zero where they are not kept.
    fn apply<T: Float>(&self, io: &Io, group: Range<usize>, keep: &[Bool; MOST]) {
        let mut values = [T::Wide::default(); MOST];
        let (step, mut done) = (self.walk.inner().strides[1], 0);
        for (at, n) in self.walk.runs(group.clone()) {
            // SAFETY: the run is within the input.
            unsafe { gather(io.input::<T>(0).offset(at[1]), step, &mut values[done..done + n]) };
            done += n;
        }
        let (scale, zero) = (T::Wide::of(self.scale), T::Wide::default());
        for (value, keep) in values.iter_mut().zip(keep) {
            *value = if keep.get() { *value * scale } else { zero };
        }
        let n = group.len();
        // SAFETY: the output is dense in the walk's order, and this part belongs to this thread.
        let out = unsafe { std::slice::from_raw_parts_mut(io.output::<T>(0).add(group.start), n) };
        T::narrow_slice(&values[..n], out);
    }
}

impl Pass<3> {
    /// The mask of a group, from input 1.
    fn mask(&self, io: &Io, group: Range<usize>) -> [Bool; MOST] {
        let (mut keep, mut done) = ([Bool(0); MOST], 0);
        let step = self.walk.inner().strides[2];
        for (at, n) in self.walk.runs(group) {
            for i in 0..n as isize {
                // SAFETY: the run is within the mask.
                keep[done] = unsafe { *io.input::<Bool>(1).offset(at[2] + i * step) };
                done += 1;
            }
        }
        keep
    }
}
