//! Layer normalisation and its gradient.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;

use super::{Known, LAST, RowFn, Rows};
use crate::error::Result;
use crate::kernels::cpu::matmul::tile::Sum;
use crate::kernels::cpu::not_float;
use crate::kernels::cpu::simd::isa::Level;
use crate::kernels::cpu::simd::wide::Wide;
use crate::kernels::cpu::strided::access::{Access, Run};
use crate::kernels::{Io, Kernel, Width, kernel};
use crate::ops::layer_norm::{LayerNorm, LayerNormGrad};
use crate::ops::{Family, Meta};

/// Prepares (x, scale, bias) -> (y, mean, inverse); bias may be left out.
///
/// # Errors
/// [`crate::Error::DType`] for types that are not floats.
pub fn layer_norm(op: &LayerNorm, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let (x, y, eps, n) = (io[0], io[io.len() - 3], op.eps.0, io[0].shape[1] as f64);
    let [scale, bias] = [1, io.len() - 4].map(|i| expanded(io[i], x));
    let has_bias = io.len() == 6;
    crate::dispatch!(float x.dtype, T => {
        let rows = Rows::new(y, &[x, &scale, &bias], 1, 0, Access::of::<T>(), width);
        let rows = rows.or_columns(false);
        Ok(kernel(0, move |io| match has_bias {
            true => rows.run::<3>(io, Forward { io, n, eps }),
            false => rows.run::<2>(io, Forward { io, n, eps }),
        }))
    }, else => not_float(op.name(), x))
}

/// Prepares (dy, x, scale, mean, inverse) -> (dx, dscale).
///
/// # Errors
/// As [`layer_norm`].
pub fn layer_norm_grad(op: &LayerNormGrad, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let (dy, x, scale) = (io[0], io[1], expanded(io[2], io[1]));
    let (steps, n) = ([io[3].strides[0], io[4].strides[0]], x.shape[1] as f64);
    crate::dispatch!(float x.dtype, T => {
        let access = Access::of::<T>();
        let rows = Rows::new(io[5], &[dy, x, &scale], 1, 0, access, width).or_columns(false);
        let columns = Rows::new(x, &[dy, x], 0, 0, access, width).in_columns();
        Ok(kernel(0, move |io| {
            let statistics = Statistics { io, steps };
            // First, because dx may take the place of dy or x.
            columns.run(io, OfScale { statistics, rows: &columns })?;
            rows.run(io, Backward { statistics, n })
        }))
    }, else => not_float(op.name(), x))
}

/// A vector as rows that are all equal.
fn expanded(vector: &Meta, x: &Meta) -> Meta {
    Meta { strides: smallvec::smallvec![0, vector.strides[0]], ..x.clone() }
}

/// Known are the mean, and the inverse of the standard deviation.
#[derive(Clone, Copy)]
struct Forward<'a> {
    io: &'a Io<'a>,
    /// The number of elements of a row.
    n: f64,
    eps: f64,
}

impl<W: Wide, const I: usize> RowFn<W, I> for Forward<'_> {
    type Stat = W;

    #[inline(always)]
    fn sums(self) -> usize {
        2
    }

    #[inline(always)]
    fn reads(self, pass: usize, input: usize) -> bool {
        input == 0 || pass == LAST
    }

    #[inline(always)]
    fn term<L: Level, const P: usize>(self, x: [W; I], [mean, ..]: Known<W>) -> f64 {
        let d = (x[0] - mean).to_f64();
        if P == 1 { d } else { d * d }
    }

    #[inline(always)]
    fn summed<const P: usize>(self, total: f64, known: &mut Known<W>) {
        let mean = total / self.n;
        known[P - 1] = W::of(if P == 1 { mean } else { 1.0 / (mean + self.eps).sqrt() });
    }

    #[inline(always)]
    fn element<L: Level>(self, x: [W; I], [mean, inverse, ..]: Known<W>) -> W {
        let y = (x[0] - mean) * inverse * x[1];
        if I > 2 { y + x[2] } else { y }
    }

    #[inline(always)]
    fn done(self, row: usize, known: Known<W>) {
        // SAFETY: both statistics have an element for each row.
        (0..2).for_each(|i| unsafe { self.io.output::<W>(1 + i).add(row).write(known[i]) });
    }
}

/// Mean and inverse of each row, from the forward pass.
#[derive(Clone, Copy)]
struct Statistics<'a> {
    io: &'a Io<'a>,
    steps: [isize; 2],
}

impl Statistics<'_> {
    #[inline(always)]
    fn of<W: Wide>(self, row: usize) -> [W; 2] {
        // SAFETY: both have an element for each row.
        let at =
            |i: usize| unsafe { *self.io.input::<W>(3 + i).offset(row as isize * self.steps[i]) };
        [at(0), at(1)]
    }
}

/// Known are the statistics, and the means of dy scale and of its product with the normalised x.
#[derive(Clone, Copy)]
struct Backward<'a> {
    statistics: Statistics<'a>,
    n: f64,
}

impl<W: Wide> RowFn<W, 3> for Backward<'_> {
    type Stat = W;

    #[inline(always)]
    fn sums(self) -> usize {
        2
    }

    #[inline(always)]
    fn start(self, row: usize) -> Known<W> {
        let [mean, inverse] = self.statistics.of(row);
        [mean, inverse, W::ZERO, W::ZERO]
    }

    #[inline(always)]
    fn term<L: Level, const P: usize>(self, [dy, x, scale]: [W; 3], known: Known<W>) -> f64 {
        let [mean, inverse, ..] = known;
        (dy * scale * if P == 1 { W::ONE } else { (x - mean) * inverse }).to_f64()
    }

    #[inline(always)]
    fn summed<const P: usize>(self, total: f64, known: &mut Known<W>) {
        known[P + 1] = W::of(total / self.n);
    }

    #[inline(always)]
    fn element<L: Level>(self, [dy, x, scale]: [W; 3], known: Known<W>) -> W {
        let [mean, inverse, of_dy, of_product] = known;
        (dy * scale - of_dy - (x - mean) * inverse * of_product) * inverse
    }
}

/// The sums over the rows, column by column: known is that of dy and the normalised x, which takes
/// the place of x.
#[derive(Clone, Copy)]
struct OfScale<'a, W> {
    statistics: Statistics<'a>,
    rows: &'a Rows<W>,
}

impl<W: Wide + Sum> RowFn<W, 2> for OfScale<'_, W> {
    type Stat = W;
    const MAPS: bool = false;

    #[inline(always)]
    fn makes(self, i: usize, column: usize, part: Range<usize>, to: &mut [W]) -> bool {
        if i == 1 {
            let (row, inner) = (part.start / part.len(), self.rows.others.inner());
            let at = |column: usize, step: isize| column as isize * step;
            let start = at(row, self.rows.axis.strides[2]) + at(column, inner.strides[2]);
            let run = Run { start, step: inner.strides[2], length: part.len() };
            // SAFETY: the run is within x.
            unsafe { self.rows.access.copy(self.statistics.io.input(1), run, to) };
            let [mean, inverse] = self.statistics.of::<W>(row);
            to.iter_mut().for_each(|x| *x = (*x - mean) * inverse);
        }
        i == 1
    }

    #[inline(always)]
    fn term<L: Level, const P: usize>(self, [dy, x]: [W; 2], _: Known<W>) -> f64 {
        (dy * x).to_f64()
    }

    #[inline(always)]
    fn summed<const P: usize>(self, total: f64, known: &mut Known<W>) {
        known[0] = W::of(total);
    }

    #[inline(always)]
    fn done(self, column: usize, known: Known<W>) {
        let run = Run { start: column as isize, step: 1, length: 1 };
        // SAFETY: dscale has an element for each column.
        unsafe { self.rows.access.store(&known[..1], self.statistics.io.output(1), run) };
    }
}
