//! The backward pass.
#![allow(unsafe_code)]

use std::sync::Arc;

use super::formulas::{Formula, Gradient, Relu, Scale, Slope, Term};
use super::passes::{Out, map, sum};
use super::setup::{INPUTS, Setup};
use crate::error::Result;
use crate::kernels::cpu::matmul::tile::Sum;
use crate::kernels::cpu::not_float;
use crate::kernels::cpu::simd::wide::Wide;
use crate::kernels::cpu::strided::access::Access;
use crate::kernels::{Kernel, Width, kernel};
use crate::ops::Meta;

/// What mean, variance and dy depend on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Through {
    /// Mean and variance are those of x.
    Batch,
    /// They do not depend on it.
    Constants,
    /// As `Batch`; dy is the gradient of max(y, 0).
    Relu,
}

/// The kernel for `io` = dy, x, scale, mean, var, dx, dscale, dbias; with a ReLU, the forward
/// pass's scale and shift follow var.
///
/// # Errors
/// As [`super::forward`].
pub fn gradient(eps: f64, through: Through, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let inputs = if through == Through::Relu { INPUTS } else { INPUTS - 2 };
    let setup = Setup::new([io[1], io[0], io[inputs]], &io[..inputs], eps, width);
    crate::dispatch!(float io[0].dtype, T => {
        let access = Access::of::<T>();
        Ok(match through {
            Through::Batch => prepare_gradient::<_, Slope, Gradient>(setup, access),
            Through::Constants => prepare_gradient::<_, Slope, Scale>(setup, access),
            Through::Relu => prepare_gradient::<_, Relu<Slope>, Relu<Gradient>>(setup, access),
        })
    }, else => not_float("batch_norm", io[0]))
}

fn prepare_gradient<A, T, F>(setup: Setup, access: Access<A>) -> Arc<dyn Kernel>
where
    A: Wide + Sum,
    T: Term + Send + Sync + 'static,
    F: Formula + Send + Sync + 'static,
{
    kernel(setup.space::<A>().iter().sum(), move |io| {
        let (pass, n) = (setup.pass(access, io, 1, 0), setup.tiles.rows() as f64);
        let sums = Out(io.scratch::<f64>());
        let mean = |c| setup.parameter::<A>(io, 3, c);
        // The coefficients of the forward pass, if a ReLU followed it.
        let relu = |c| match T::IS_RECTIFIED {
            true => [5, 6].map(|i| setup.parameter::<A>(io, i, c)),
            false => [0.0; 2],
        };
        let rectify = |c| {
            let [scale, shift] = relu(c);
            [mean(c), scale, shift].map(A::from_f64)
        };
        // SAFETY: the scratch memory starts with the sums.
        unsafe { sum::<A, T>(pass, sums, mean, rectify) }?;
        let coefficients = setup.coefficients::<A>(io, |c| {
            let [scale, mean, var] = [2, 3, 4].map(|i| setup.parameter::<A>(io, i, c));
            let [of_dy, of_product] = setup.totals(io, c);
            let inverse = 1.0 / (var + setup.eps).sqrt();
            // SAFETY: outputs 1 and 2 have an element for each channel, contiguously.
            unsafe {
                Out(io.output::<A>(1)).set(c, A::from_f64(of_product * inverse));
                Out(io.output::<A>(2)).set(c, A::from_f64(of_dy));
            }
            let scale = scale * inverse;
            let slope = -scale * inverse * inverse * of_product / n;
            let [forward_scale, forward_shift] = relu(c);
            [mean, scale, -scale * of_dy / n, slope, forward_scale, forward_shift]
        })?;
        // SAFETY: the tensors have the metas that the setup was made for.
        unsafe { map::<A, F>(pass, coefficients) }
    })
}
