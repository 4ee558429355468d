//! Batch normalisation. Sums are kept in float64, channel by channel, in chunks that depend on
//! the sizes alone, so the number of threads does not change a bit of the result. Deviations are
//! taken from each channel's first element: the variance then loses at most as many times the
//! rounding of float64 as a channel has elements, whatever its mean.
#![allow(unsafe_code)]

mod formulas;
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
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::{Io, Kernel, Meta, Width, kernel};
use formulas::{
    COEFFICIENTS, Deviation, Formula, Gradient, Normalize, Plus, Relu, Scale, Slope, Term,
};
use passes::{Out, Pass, map, sum};
use tiles::Tiles;

/// The most inputs of a kernel.
const INPUTS: usize = 7;

/// What a kernel is prepared for.
#[derive(Clone, Debug)]
struct Plan {
    tiles: Tiles,
    parts: usize,
    eps: f64,
    /// Steps of the inputs that have an element a channel, by the input's number.
    steps: [isize; INPUTS],
}

impl Plan {
    /// For x (or dx), dy and the result.
    fn new(metas: [&Meta; 3], inputs: &[&Meta], eps: f64, width: Width) -> Plan {
        let tiles = Tiles::new(metas);
        let parts = width.0.min(tiles.count()).max(1);
        let step = |i: usize| inputs.get(i).map_or(0, |m| m.strides[0]);
        Plan { tiles, parts, eps, steps: std::array::from_fn(step) }
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
        [sums, space::bytes::<A>([channels; COEFFICIENTS])]
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

    /// Computes each channel's coefficients.
    fn coefficients<'a, A: Sum>(
        &self,
        io: &Io<'a>,
        of: impl Fn(usize) -> [f64; COEFFICIENTS] + Sync,
    ) -> Result<[&'a [A]; COEFFICIENTS]> {
        let channels = self.tiles.channels;
        // SAFETY: the coefficients stand behind the sums.
        let arrays = unsafe {
            let at = io.scratch::<u8>().add(self.space::<A>()[0]);
            space::arrays::<A, COEFFICIENTS>(at, [channels; COEFFICIENTS])
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

    /// The coefficients that map x to the wanted mean and variance; `keep` gets each channel's
    /// mean, variance, factor and term.
    fn measure<'a, A: Wide + Sum>(
        &self,
        access: Access<A>,
        io: &'a Io<'a>,
        keep: impl Fn(usize, [f64; 4]) + Sync,
    ) -> Result<[&'a [A]; COEFFICIENTS]> {
        let (pass, n) = (self.pass(access, io, 0, 0), self.tiles.rows() as f64);
        let (sums, no_relu) = (Out(io.scratch::<f64>()), |_| [A::ZERO; 3]);
        // SAFETY: the work space starts with the sums.
        unsafe { sum::<A, Deviation>(pass, sums, |c| self.pivot(access, io, c), no_relu) }?;
        self.coefficients::<A>(io, |c| {
            let (pivot, [first, second]) = (self.pivot(access, io, c), self.totals(io, c));
            let mean = pivot + first / n;
            let var = (second - first * (first / n)) / n;
            let var = if var < 0.0 { 0.0 } else { var };
            let factor = self.parameter::<A>(io, 1, c) / (var + self.eps).sqrt();
            // What rounding took from the mean is given back by the term.
            let lost = (A::from_f64(mean).to_f64() - mean) * factor;
            let lost = if lost.is_finite() { lost } else { 0.0 };
            let term = self.parameter::<A>(io, 2, c) + lost;
            keep(c, [mean, var, factor, term]);
            [mean, factor, term, 0.0, 0.0, 0.0]
        })
    }
}

fn not_float(io: &[&Meta]) -> Result<Arc<dyn Kernel>> {
    Err(Error::dtype("batch_norm", [io[0].dtype], "a float dtype"))
}

/// The type of what has one element a channel, beside x of a float type.
pub fn parameter(x: DType) -> DType {
    if x == DType::Float64 { x } else { DType::Float32 }
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
        let coefficients = plan.measure(access, io, |c, [mean, var, ..]| {
            // SAFETY: outputs 1 and 2 have an element for each channel, side by side.
            unsafe {
                Out(io.output::<A>(1)).set(c, A::from_f64(mean));
                Out(io.output::<A>(2)).set(c, A::from_f64(var));
            }
        })?;
        // SAFETY: the tensors are those that the plan was made for.
        unsafe { map::<A, Normalize>(plan.pass(access, io, 0, 0), coefficients) }
    })
}

/// The kernel for `io` = x, scale, bias, mean, var, factor, term.
///
/// # Errors
/// As [`forward`].
pub fn statistics(eps: f64, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let plan = Plan::new([io[0]; 3], &io[..3], eps, width);
    crate::dispatch!(float io[0].dtype, T => Ok(prepare_statistics(plan, Access::of::<T>())),
        else => not_float(io))
}

fn prepare_statistics<A: Wide + Sum>(plan: Plan, access: Access<A>) -> Arc<dyn Kernel> {
    kernel(plan.space::<A>().iter().sum(), move |io| {
        let keep = |c, values: [f64; 4]| {
            for (o, value) in values.into_iter().enumerate() {
                // SAFETY: the outputs have an element for each channel, side by side.
                unsafe { Out(io.output::<A>(o)).set(c, A::from_f64(value)) };
            }
        };
        plan.measure(access, io, keep).map(drop)
    })
}

/// The kernel for `io` = x, mean, factor, term, what is added if something is, y.
///
/// # Errors
/// As [`forward`].
pub fn normalize(adds: bool, relu: bool, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let (y, inputs) = (io[io.len() - 1], &io[..io.len() - 1]);
    let plan = Plan::new([io[0], inputs[if adds { 4 } else { 0 }], y], inputs, 0.0, width);
    crate::dispatch!(float io[0].dtype, T => {
        let access = Access::of::<T>();
        Ok(match (adds, relu) {
            (false, false) => prepare_normalize::<_, Normalize>(plan, access),
            (false, true) => prepare_normalize::<_, Relu<Normalize>>(plan, access),
            (true, false) => prepare_normalize::<_, Plus<Normalize>>(plan, access),
            (true, true) => prepare_normalize::<_, Relu<Plus<Normalize>>>(plan, access),
        })
    }, else => not_float(io))
}

fn prepare_normalize<A, F>(plan: Plan, access: Access<A>) -> Arc<dyn Kernel>
where
    A: Wide + Sum,
    F: Formula + Send + Sync + 'static,
{
    kernel(plan.space::<A>().iter().sum(), move |io| {
        let coefficients = plan.coefficients::<A>(io, |c| {
            let [mean, factor, term] = [1, 2, 3].map(|i| plan.parameter::<A>(io, i, c));
            [mean, factor, term, 0.0, 0.0, 0.0]
        })?;
        // SAFETY: the tensors are those that the plan was made for.
        unsafe { map::<A, F>(plan.pass(access, io, 0, 4), coefficients) }
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
            [mean, scale / (var + plan.eps).sqrt(), bias, 0.0, 0.0, 0.0]
        })?;
        // SAFETY: the tensors are those that the plan was made for.
        unsafe { map::<A, Normalize>(plan.pass(access, io, 0, 0), coefficients) }
    })
}

/// How mean and variance, and dy, come about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Through {
    /// Mean and variance are those of x.
    Batch,
    /// They do not depend on it.
    Constants,
    /// As `Batch`; dy is that of max(y, 0).
    Relu,
}

/// The kernel for `io` = dy, x, scale, mean, var, dx, dscale, dbias; through a ReLU the forward
/// pass's scale and shift come after var.
///
/// # Errors
/// As [`forward`].
pub fn gradient(eps: f64, through: Through, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let inputs = if through == Through::Relu { INPUTS } else { INPUTS - 2 };
    let plan = Plan::new([io[1], io[0], io[inputs]], &io[..inputs], eps, width);
    crate::dispatch!(float io[0].dtype, T => {
        let access = Access::of::<T>();
        Ok(match through {
            Through::Batch => prepare_gradient::<_, Slope, Gradient>(plan, access),
            Through::Constants => prepare_gradient::<_, Slope, Scale>(plan, access),
            Through::Relu => prepare_gradient::<_, Relu<Slope>, Relu<Gradient>>(plan, access),
        })
    }, else => not_float(io))
}

fn prepare_gradient<A, T, F>(plan: Plan, access: Access<A>) -> Arc<dyn Kernel>
where
    A: Wide + Sum,
    T: Term + Send + Sync + 'static,
    F: Formula + Send + Sync + 'static,
{
    kernel(plan.space::<A>().iter().sum(), move |io| {
        let (pass, n) = (plan.pass(access, io, 1, 0), plan.tiles.rows() as f64);
        let sums = Out(io.scratch::<f64>());
        let mean = |c| plan.parameter::<A>(io, 3, c);
        // What the forward pass computed with, where a ReLU followed it.
        let relu = |c| match T::IS_RECTIFIED {
            true => [5, 6].map(|i| plan.parameter::<A>(io, i, c)),
            false => [0.0; 2],
        };
        let rectify = |c| {
            let [scale, shift] = relu(c);
            [mean(c), scale, shift].map(A::from_f64)
        };
        // SAFETY: the work space starts with the sums.
        unsafe { sum::<A, T>(pass, sums, mean, rectify) }?;
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
            let [forward_scale, forward_shift] = relu(c);
            [mean, scale, -scale * of_dy / n, slope, forward_scale, forward_shift]
        })?;
        // SAFETY: the tensors are those that the plan was made for.
        unsafe { map::<A, F>(pass, coefficients) }
    })
}
