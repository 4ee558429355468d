//! Forward passes: in one step, in two, and with given statistics.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;

use super::formulas::{Formula, Normalize, Plus, Relu};
use super::passes::{Out, map};
use super::setup::Setup;
use crate::error::Result;
use crate::kernels::cpu::matmul::tile::Sum;
use crate::kernels::cpu::not_float;
use crate::kernels::cpu::simd::wide::Wide;
use crate::kernels::cpu::strided::access::Access;
use crate::kernels::{Kernel, Width, kernel};
use crate::ops::Meta;

/// Where the coefficients come from.
#[derive(Clone)]
enum Source {
    /// x; these outputs get the first of mean, variance, factor and term.
    Batch(Range<usize>),
    /// The inputs mean, factor and term.
    Factors,
    /// The inputs scale, bias, mean and variance.
    Statistics,
}

/// The kernel for `io` = x, scale, bias, y, mean, var.
///
/// # Errors
/// [`crate::Error::DType`] for types that are not floats.
pub fn forward(eps: f64, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let setup = Setup::new([io[0], io[0], io[3]], &io[..3], eps, width);
    prepare::<Normalize>(setup, Source::Batch(1..3), true, io[0])
}

/// The kernel for `io` = x, scale, bias, mean, var, factor, term.
///
/// # Errors
/// As [`forward`].
pub fn statistics(eps: f64, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let setup = Setup::new([io[0]; 3], &io[..3], eps, width);
    prepare::<Normalize>(setup, Source::Batch(0..4), false, io[0])
}

/// The kernel for `io` = x, scale, bias, mean, var, y.
///
/// # Errors
/// As [`forward`].
pub fn inference(eps: f64, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let setup = Setup::new([io[0], io[0], io[5]], &io[..5], eps, width);
    prepare::<Normalize>(setup, Source::Statistics, true, io[0])
}

/// The kernel for `io` = x, mean, factor, term, the added tensor if there is one, y.
///
/// # Errors
/// As [`forward`].
pub fn normalize(adds: bool, relu: bool, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let (y, inputs) = (io[io.len() - 1], &io[..io.len() - 1]);
    let setup = Setup::new([io[0], inputs[if adds { 4 } else { 0 }], y], inputs, 0.0, width);
    let prepare = match (adds, relu) {
        (false, false) => prepare::<Normalize>,
        (false, true) => prepare::<Relu<Normalize>>,
        (true, false) => prepare::<Plus<Normalize>>,
        (true, true) => prepare::<Relu<Plus<Normalize>>>,
    };
    prepare(setup, Source::Factors, true, io[0])
}

fn prepare<F>(setup: Setup, source: Source, maps: bool, x: &Meta) -> Result<Arc<dyn Kernel>>
where
    F: Formula + Send + Sync + 'static,
{
    crate::dispatch!(float x.dtype, T => Ok(of::<_, F>(setup, source, maps, Access::of::<T>())),
        else => not_float("batch_norm", x))
}

/// `maps`: whether y is computed.
fn of<A, F>(setup: Setup, source: Source, maps: bool, access: Access<A>) -> Arc<dyn Kernel>
where
    A: Wide + Sum,
    F: Formula + Send + Sync + 'static,
{
    kernel(setup.space::<A>().iter().sum(), move |io| {
        let given = |i: usize, c: usize| setup.parameter::<A>(io, i, c);
        let coefficients = match &source {
            Source::Batch(outputs) => setup.measure(access, io, |c, values| {
                for (o, value) in outputs.clone().zip(values) {
                    // SAFETY: the outputs have an element for each channel, contiguously.
                    unsafe { Out(io.output::<A>(o)).set(c, A::from_f64(value)) };
                }
            })?,
            Source::Factors => setup
                .coefficients(io, |c| [given(1, c), given(2, c), given(3, c), 0.0, 0.0, 0.0])?,
            Source::Statistics => setup.coefficients(io, |c| {
                let factor = given(1, c) / (given(4, c) + setup.eps).sqrt();
                [given(3, c), factor, given(2, c), 0.0, 0.0, 0.0]
            })?,
        };
        if !maps {
            return Ok(());
        }
        // SAFETY: the tensors have the metas that the setup was made for.
        unsafe { map::<A, F>(setup.pass(access, io, 0, 4), coefficients) }
    })
}
