//! Softmax, log-softmax and their gradients.

use std::sync::Arc;

use super::{Known, RowFn, Rows};
use crate::error::Result;
use crate::kernels::cpu::matmul::tile::Sum;
use crate::kernels::cpu::not_float;
use crate::kernels::cpu::simd::isa::Level;
use crate::kernels::cpu::simd::wide::Wide;
use crate::kernels::cpu::strided::access::Access;
use crate::kernels::{Kernel, Width, kernel};
use crate::ops::softmax::{Softmax, SoftmaxGrad};
use crate::ops::{Family, Meta};

/// Prepares x -> y, for softmax or its logarithm.
///
/// # Errors
/// [`crate::Error::DType`] for types that are not floats.
pub fn softmax(op: &Softmax, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let axis = io[0].shape.axis(op.name(), op.axis)?;
    crate::dispatch!(float io[0].dtype, T => {
        let rows = Rows::new(io[1], &io[..1], axis, 0, Access::of::<T>(), width);
        let rows = rows.or_columns(true);
        Ok(prepare(rows, Forward { log: op.log }))
    }, else => not_float(op.name(), io[0]))
}

/// Prepares (dy, y) -> dx.
///
/// # Errors
/// As [`softmax`].
pub fn softmax_grad(op: &SoftmaxGrad, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let axis = io[0].shape.axis(op.name(), op.axis)?;
    crate::dispatch!(float io[0].dtype, T => {
        let rows = Rows::new(io[2], &io[..2], axis, 0, Access::of::<T>(), width);
        let rows = rows.or_columns(false);
        Ok(prepare(rows, Backward { log: op.log }))
    }, else => not_float(op.name(), io[0]))
}

fn prepare<W: Wide + Sum, const I: usize>(
    rows: Rows<W>,
    f: impl RowFn<W, I> + Send + 'static,
) -> Arc<dyn Kernel> {
    kernel(rows.scratch(), move |io| rows.run(io, f))
}

#[derive(Clone, Copy)]
struct Forward {
    log: bool,
}

/// Known are the greatest value, and the inverse or the logarithm of the sum of the exponentials.
impl<W: Wide> RowFn<W, 1> for Forward {
    type Stat = W;
    const SEEKS: bool = true;

    #[inline(always)]
    fn greatest(self, value: W) -> W {
        value
    }

    #[inline(always)]
    fn prepared<L: Level>(self, x: W, [greatest, ..]: Known<W>) -> W {
        (x - greatest).exp::<L>()
    }

    #[inline(always)]
    fn keeps(self) -> bool {
        !self.log
    }

    #[inline(always)]
    fn term<L: Level, const P: usize>(self, [x]: [W; 1], _: Known<W>) -> f64 {
        x.to_f64()
    }

    #[inline(always)]
    fn summed<const P: usize>(self, total: f64, known: &mut Known<W>) {
        known[1] = W::of(if self.log { total.ln() } else { 1.0 / total });
    }

    #[inline(always)]
    fn element<L: Level>(self, [x]: [W; 1], [greatest, last, ..]: Known<W>) -> W {
        if self.log { (x - greatest) - last } else { x * last }
    }
}

#[derive(Clone, Copy)]
struct Backward {
    log: bool,
}

/// Known is the sum of dy y, or of dy.
impl<W: Wide> RowFn<W, 2> for Backward {
    type Stat = W;

    #[inline(always)]
    fn term<L: Level, const P: usize>(self, [dy, y]: [W; 2], _: Known<W>) -> f64 {
        dy.to_f64() * if self.log { 1.0 } else { y.to_f64() }
    }

    #[inline(always)]
    fn summed<const P: usize>(self, total: f64, known: &mut Known<W>) {
        known[0] = W::of(total);
    }

    #[inline(always)]
    fn element<L: Level>(self, [dy, y]: [W; 2], [sum, ..]: Known<W>) -> W {
        if self.log { dy - y.exp::<L>() * sum } else { y * (dy - sum) }
    }
}
