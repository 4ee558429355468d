//! Layer and root mean square normalisation, and their gradients.
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
use crate::ops::rms_norm::{RmsNorm, RmsNormGrad};
use crate::ops::{Family, Meta};

/// Prepares (x, scale, bias) -> (y, mean, inverse); bias may be left out.
///
/// # Errors
/// [`crate::Error::DType`] for types that are not floats.
pub fn layer_norm(op: &LayerNorm, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let (x, bias) = (io[0], io.len() - 4);
    match io.len() {
        6 => forward::<true, 3>(op.name(), op.eps.0, x, &[io[1], io[bias]], io[3], width),
        _ => forward::<true, 2>(op.name(), op.eps.0, x, &[io[1]], io[2], width),
    }
}

/// Prepares (x, scale) -> (y, inverse).
///
/// # Errors
/// As [`layer_norm`].
pub fn rms_norm(op: &RmsNorm, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    forward::<false, 2>(op.name(), op.eps.0, io[0], &[io[1]], io[2], width)
}

/// Prepares (dy, x, scale, mean, inverse) -> (dx, dscale).
///
/// # Errors
/// As [`layer_norm`].
pub fn layer_norm_grad(op: &LayerNormGrad, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let steps = [io[3].strides[0], io[4].strides[0]];
    backward::<true>(op.name(), steps, &io[..3], io[5], width)
}

/// Prepares (dy, x, scale, inverse) -> (dx, dscale).
///
/// # Errors
/// As [`layer_norm`].
pub fn rms_norm_grad(op: &RmsNormGrad, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    backward::<false>(op.name(), [0, io[3].strides[0]], &io[..3], io[4], width)
}

/// The kernel of the forward pass of `I` inputs, with the rows' means subtracted if `CENTRED`.
fn forward<const CENTRED: bool, const I: usize>(
    name: &'static str,
    eps: f64,
    x: &Meta,
    vectors: &[&Meta],
    y: &Meta,
    width: Width,
) -> Result<Arc<dyn Kernel>> {
    let n = x.shape[1] as f64;
    let vectors = [vectors[0], vectors[vectors.len() - 1]].map(|vector| expanded(vector, x));
    crate::dispatch!(float x.dtype, T => {
        let inputs = [x, &vectors[0], &vectors[1]];
        let rows = Rows::new(y, &inputs, 1, 0, Access::of::<T>(), width).or_columns(false);
        Ok(kernel(0, move |io| rows.run::<I>(io, Forward::<CENTRED> { io, n, eps })))
    }, else => not_float(name, x))
}

/// The kernel of the gradient, from `inputs` dy, x and scale and statistics with `steps` between
/// their elements.
fn backward<const CENTRED: bool>(
    name: &'static str,
    steps: [isize; 2],
    inputs: &[&Meta],
    dx: &Meta,
    width: Width,
) -> Result<Arc<dyn Kernel>> {
    let (dy, x, scale) = (inputs[0], inputs[1], expanded(inputs[2], inputs[1]));
    let n = x.shape[1] as f64;
    crate::dispatch!(float x.dtype, T => {
        let access = Access::of::<T>();
        let rows = Rows::new(dx, &[dy, x, &scale], 1, 0, access, width).or_columns(false);
        let columns = Rows::new(x, &[dy, x], 0, 0, access, width).in_columns();
        Ok(kernel(0, move |io| {
            let statistics = Statistics::<CENTRED> { io, steps };
            // First, because dx may take the place of dy or x.
            columns.run(io, OfScale { statistics, rows: &columns })?;
            rows.run(io, Backward { statistics, n })
        }))
    }, else => not_float(name, x))
}

/// A vector as rows that are all equal.
fn expanded(vector: &Meta, x: &Meta) -> Meta {
    Meta { strides: smallvec::smallvec![0, vector.strides[0]], ..x.clone() }
}

/// Known are the mean (0 unless `CENTRED`), and the inverse of the deviation from it.
#[derive(Clone, Copy)]
struct Forward<'a, const CENTRED: bool> {
    io: &'a Io<'a>,
    /// The number of elements of a row.
    n: f64,
    eps: f64,
}

impl<W: Wide, const C: bool, const I: usize> RowFn<W, I> for Forward<'_, C> {
    type Stat = W;

    #[inline(always)]
    fn sums(self) -> usize {
        1 + usize::from(C)
    }

    #[inline(always)]
    fn reads(self, pass: usize, input: usize) -> bool {
        input == 0 || pass == LAST
    }

    #[inline(always)]
    fn term<L: Level, const P: usize>(self, x: [W; I], [mean, ..]: Known<W>) -> f64 {
        let d = (x[0] - mean).to_f64();
        if C && P == 1 { d } else { d * d }
    }

    #[inline(always)]
    fn summed<const P: usize>(self, total: f64, known: &mut Known<W>) {
        let mean = total / self.n;
        match C && P == 1 {
            true => known[0] = W::of(mean),
            false => known[1] = W::of(1.0 / (mean + self.eps).sqrt()),
        }
    }

    #[inline(always)]
    fn element<L: Level>(self, x: [W; I], [mean, inverse, ..]: Known<W>) -> W {
        let y = (x[0] - mean) * inverse * x[1];
        if I > 2 { y + x[2] } else { y }
    }

    #[inline(always)]
    fn done(self, row: usize, known: Known<W>) {
        let made = &known[usize::from(!C)..2];
        for (i, &value) in made.iter().enumerate() {
            // SAFETY: the statistics have an element for each row.
            unsafe { self.io.output::<W>(1 + i).add(row).write(value) };
        }
    }
}

/// Mean (0 unless `CENTRED`) and inverse of each row, from the forward pass.
#[derive(Clone, Copy)]
struct Statistics<'a, const CENTRED: bool> {
    io: &'a Io<'a>,
    steps: [isize; 2],
}

impl<const C: bool> Statistics<'_, C> {
    #[inline(always)]
    fn of<W: Wide>(self, row: usize) -> [W; 2] {
        let at = |i: usize, step: isize| {
            // SAFETY: the statistics have an element for each row.
            unsafe { *self.io.input::<W>(i).offset(row as isize * step) }
        };
        let mean = if C { at(3, self.steps[0]) } else { W::ZERO };
        [mean, at(3 + usize::from(C), self.steps[1])]
    }
}

/// Known are the statistics, and the means of dy scale (0 unless `CENTRED`) and of its product with the normalised x.
#[derive(Clone, Copy)]
struct Backward<'a, const CENTRED: bool> {
    statistics: Statistics<'a, CENTRED>,
    n: f64,
}

impl<W: Wide, const C: bool> RowFn<W, 3> for Backward<'_, C> {
    type Stat = W;

    #[inline(always)]
    fn sums(self) -> usize {
        1 + usize::from(C)
    }

    #[inline(always)]
    fn start(self, row: usize) -> Known<W> {
        let [mean, inverse] = self.statistics.of(row);
        [mean, inverse, W::ZERO, W::ZERO]
    }

    #[inline(always)]
    fn term<L: Level, const P: usize>(self, [dy, x, scale]: [W; 3], known: Known<W>) -> f64 {
        let [mean, inverse, ..] = known;
        (dy * scale * if C && P == 1 { W::ONE } else { (x - mean) * inverse }).to_f64()
    }

    #[inline(always)]
    fn summed<const P: usize>(self, total: f64, known: &mut Known<W>) {
        known[if C { P + 1 } else { 3 }] = W::of(total / self.n);
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
struct OfScale<'a, W, const CENTRED: bool> {
    statistics: Statistics<'a, CENTRED>,
    rows: &'a Rows<W>,
}

impl<W: Wide + Sum, const C: bool> RowFn<W, 2> for OfScale<'_, W, C> {
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
