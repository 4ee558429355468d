//! Batch normalisation. Sums are kept in float64, channel by channel, in chunks that depend on
//! the sizes alone, so the number of threads does not change a bit of the result. Deviations are
//! taken from each channel's first element: the variance then loses at most as many times the
//! rounding of float64 as a channel has elements, whatever its mean.
#![allow(unsafe_code)]

mod passes;
#[cfg(test)]
mod tests;
mod tiles;

use std::sync::Arc;

use super::access::{Access, Run};
use super::space;
use super::tile::Sum;
use super::wide::Wide;
use crate::device::team;
use crate::error::{Error, Result};
use crate::ops::{Io, Kernel, Meta, Width, kernel};
use passes::{Gradient, Normalize, Out, Pass, Scale, map, sum};
use tiles::Tiles;

/// What a kernel is prepared for.
#[derive(Clone, Debug)]
struct Plan {
    tiles: Tiles,
    parts: usize,
    eps: f64,
    /// Steps of the inputs that have an element a channel, by the input's number.
    steps: [isize; 5],
}

impl Plan {
    /// For x (or dx), dy and the result.
    fn new(metas: [&Meta; 3], inputs: &[&Meta], eps: f64, width: Width) -> Plan {
        let tiles = Tiles::new(metas);
        let parts = width.0.min(tiles.count()).max(1);
        let step = |i: usize| inputs.get(i).map_or(0, |m| m.strides[0]);
        Plan { tiles, parts, eps, steps: [0, 1, 2, 3, 4].map(step) }
    }

    fn pass<'a, A>(
        &'a self,
        access: Access<A>,
        io: &'a Io<'a>,
        x: usize,
        dy: usize,
    ) -> Pass<'a, A> {
        Pass { access, tiles: &self.tiles, parts: self.parts, io, x, dy }
    }

    /// Bytes of the sums, and of the coefficients behind them.
    fn space<A: Sum>(&self) -> [usize; 2] {
        let channels = self.tiles.channels;
        let sums = space::bytes::<f64>([2 * self.tiles.chunks * channels]);
        [sums, space::bytes::<A>([channels; 4])]
    }

    /// Element `c` of input `i`, which has one a channel.
    fn parameter<A: Sum>(&self, io: &Io, i: usize, c: usize) -> f64 {
        // SAFETY: the input has an element for each channel, of the type that x computes in.
        unsafe { *io.input::<A>(i).offset(c as isize * self.steps[i]) }.to_f64()
    }

    /// The first element of a channel of input 0, from which deviations are taken.
    fn pivot<A: Sum>(&self, access: Access<A>, io: &Io, c: usize) -> f64 {
        let (run, mut first) =
            (Run { start: self.tiles.first(c), step: 0, length: 1 }, [A::LOWEST]);
        // SAFETY: input 0 has elements in each channel.
        unsafe { access.copy(io.input(0), run, &mut first) };
        let first = first[0].to_f64();
        if first.is_finite() { first } else { 0.0 }
    }

    /// Both sums of a channel, chunks in order.
    fn totals(&self, io: &Io, c: usize) -> [f64; 2] {
        let Tiles { chunks, channels, .. } = self.tiles;
        // SAFETY: the work space starts with the sums, which are complete.
        let sum = |place: usize| unsafe { *io.scratch::<f64>().add(place * channels + c) };
        [0, 1].map(|which| (0..chunks).map(|chunk| sum(which * chunks + chunk)).sum())
    }

    /// Computes each channel's four coefficients.
    fn coefficients<'a, A: Sum>(
        &self,
        io: &Io<'a>,
        of: impl Fn(usize) -> [f64; 4] + Sync,
    ) -> Result<[&'a [A]; 4]> {
        let channels = self.tiles.channels;
        // SAFETY: the coefficients stand behind the sums.
        let arrays = unsafe {
            let at = io.scratch::<u8>().add(self.space::<A>()[0]);
            space::arrays::<A, 4>(at, [channels; 4])
        };
        let out = arrays.map(|array| Out(array.as_mut_ptr()));
        team::parallel(self.parts, &|part| {
            for c in team::share(channels, 1, self.parts, part) {
                let values = of(c).map(A::from_f64);
                // SAFETY: each channel is one part's.
                out.into_iter().zip(values).for_each(|(out, value)| unsafe { out.set(c, value) });
            }
        })?;
        // SAFETY: the arrays are as long, and complete.
        Ok(out.map(|out| unsafe { std::slice::from_raw_parts(out.0, channels) }))
    }
}

fn not_float(io: &[&Meta]) -> Result<Arc<dyn Kernel>> {
    Err(Error::dtype("batch_norm", [io[0].dtype], "a float dtype"))
}

/// The kernel for `io` = x, scale, bias, y, mean, var.
///
/// # Errors
/// [`Error::DType`] for types that are not floats.
pub fn forward(eps: f64, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let plan = Plan::new([io[0], io[0], io[3]], &io[..3], eps, width);
    crate::dispatch!(float io[0].dtype, T => Ok(prepare_forward(plan, Access::of::<T>())),
        else => not_float(io))
}

fn prepare_forward<A: Wide + Sum>(plan: Plan, access: Access<A>) -> Arc<dyn Kernel> {
    kernel(plan.space::<A>().iter().sum(), move |io| {
        let (pass, n) = (plan.pass(access, io, 0, 0), plan.tiles.rows() as f64);
        let sums = Out(io.scratch::<f64>());
        // SAFETY: the work space starts with the sums.
        unsafe { sum::<A, false>(pass, sums, |c| plan.pivot(access, io, c)) }?;
        let coefficients = plan.coefficients::<A>(io, |c| {
            let (pivot, [first, second]) = (plan.pivot(access, io, c), plan.totals(io, c));
            let mean = pivot + first / n;
            let var = (second - first * (first / n)) / n;
            let var = if var < 0.0 { 0.0 } else { var };
            let scale = plan.parameter::<A>(io, 1, c) / (var + plan.eps).sqrt();
            let rounded = A::from_f64(mean);
            // SAFETY: outputs 1 and 2 have an element for each channel, side by side.
            unsafe {
                Out(io.output::<A>(1)).set(c, rounded);
                Out(io.output::<A>(2)).set(c, A::from_f64(var));
            }
            // What rounding took from the mean is given back by the shift.
            let lost = (rounded.to_f64() - mean) * scale;
            let lost = if lost.is_finite() { lost } else { 0.0 };
            [mean, scale, plan.parameter::<A>(io, 2, c) + lost, 0.0]
        })?;
        // SAFETY: the tensors are those that the plan was made for.
        unsafe { map::<A, Normalize>(pass, coefficients) }
    })
}

/// The kernel for `io` = x, scale, bias, mean, var, y.
///
/// # Errors
/// As [`forward`].
pub fn inference(eps: f64, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let plan = Plan::new([io[0], io[0], io[5]], &io[..5], eps, width);
    crate::dispatch!(float io[0].dtype, T => Ok(prepare_inference(plan, Access::of::<T>())),
        else => not_float(io))
}

fn prepare_inference<A: Wide + Sum>(plan: Plan, access: Access<A>) -> Arc<dyn Kernel> {
    kernel(plan.space::<A>().iter().sum(), move |io| {
        let coefficients = plan.coefficients::<A>(io, |c| {
            let [scale, bias, mean, var] = [1, 2, 3, 4].map(|i| plan.parameter::<A>(io, i, c));
            [mean, scale / (var + plan.eps).sqrt(), bias, 0.0]
        })?;
        // SAFETY: the tensors are those that the plan was made for.
        unsafe { map::<A, Normalize>(plan.pass(access, io, 0, 0), coefficients) }
    })
}

/// The kernel for `io` = dy, x, scale, mean, var, dx, dscale, dbias; mean and variance are those
/// of x, or (`constant`) do not depend on it.
///
/// # Errors
/// As [`forward`].
pub fn gradient(eps: f64, constant: bool, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let plan = Plan::new([io[1], io[0], io[5]], &io[..5], eps, width);
    crate::dispatch!(float io[0].dtype,
        T => Ok(prepare_gradient(plan, Access::of::<T>(), constant)),
        else => not_float(io))
}

fn prepare_gradient<A: Wide + Sum>(
    plan: Plan,
    access: Access<A>,
    constant: bool,
) -> Arc<dyn Kernel> {
    kernel(plan.space::<A>().iter().sum(), move |io| {
        let (pass, n) = (plan.pass(access, io, 1, 0), plan.tiles.rows() as f64);
        let sums = Out(io.scratch::<f64>());
        // SAFETY: the work space starts with the sums.
        unsafe { sum::<A, true>(pass, sums, |c| plan.parameter::<A>(io, 3, c)) }?;
        let coefficients = plan.coefficients::<A>(io, |c| {
            let [scale, mean, var] = [2, 3, 4].map(|i| plan.parameter::<A>(io, i, c));
            let [of_dy, of_product] = plan.totals(io, c);
            let inverse = 1.0 / (var + plan.eps).sqrt();
            // SAFETY: outputs 1 and 2 have an element for each channel, side by side.
            unsafe {
                Out(io.output::<A>(1)).set(c, A::from_f64(of_product * inverse));
                Out(io.output::<A>(2)).set(c, A::from_f64(of_dy));
            }
            let scale = scale * inverse;
            let slope = -scale * inverse * inverse * of_product / n;
            [mean, scale, -scale * of_dy / n, slope]
        })?;
        // SAFETY: the tensors are those that the plan was made for.
        unsafe {
            if constant {
                map::<A, Scale>(pass, coefficients)
            } else {
                map::<A, Gradient>(pass, coefficients)
            }
        }
    })
}
