//! Softmax and cross entropy in one, and the gradient.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;

use super::{Known, RowFn, Rows};
use crate::dtype::Element;
use crate::error::Result;
use crate::kernels::cpu::copy::indices::{Indices, indexed};
use crate::kernels::cpu::matmul::tile::Sum;
use crate::kernels::cpu::not_float;
use crate::kernels::cpu::simd::isa::Level;
use crate::kernels::cpu::simd::wide::Wide;
use crate::kernels::cpu::strided::access::{Access, Run};
use crate::kernels::{Io, Kernel, Width, kernel};
use crate::ops::cross_entropy::{SoftmaxCrossEntropy, SoftmaxCrossEntropyGrad, has_labels};
use crate::ops::{Family, Meta};

/// Prepares (x, t) -> (loss, lse): the mean over the rows, and for each row, in float64, its
/// maximum and the logarithm of the sum of the exponentials relative to it.
///
/// # Errors
/// [`crate::Error::DType`] and [`crate::Error::Shape`] for other targets than the operation takes.
pub fn loss(op: &SoftmaxCrossEntropy, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let (name, x) = (op.name(), io[0]);
    let labels = labels(name, 1, op.ignored, x, io[1])?;
    let ignored = op.ignored;
    let t = if labels.is_some() { x } else { io[1] };
    crate::dispatch!(float x.dtype, T => {
        let rows = Rows::new(x, &[x, t], 1, 0, Access::of::<T>(), width);
        Ok(prepare(labels, width, x.shape[0] * size_of::<f64>(), move |io, labels| {
            mean(&rows, io, Targets { labels, ignored })
        }))
    }, else => not_float(name, x))
}

/// Prepares (dloss, x, t, lse) -> dx.
///
/// # Errors
/// As [`loss`].
pub fn gradient(
    op: &SoftmaxCrossEntropyGrad,
    io: &[&Meta],
    width: Width,
) -> Result<Arc<dyn Kernel>> {
    let (name, x, lse) = (op.name(), io[1], [io[3].strides[0], io[3].strides[1]]);
    let labels = labels(name, 2, op.ignored, x, io[2])?;
    let ignored = op.ignored;
    let t = if labels.is_some() { x } else { io[2] };
    crate::dispatch!(float x.dtype, T => {
        let rows = Rows::new(io[4], &[x, t], 1, 1, Access::of::<T>(), width);
        Ok(prepare(labels, width, 0, move |io, labels| {
            // SAFETY: dloss has one element.
            let dloss = Element::to_f64(unsafe { rows.access.get(io.input(0), 0) });
            let targets = Targets { labels, ignored };
            let scale = Wide::of(dloss / targets.count(rows.others.elements()) as f64);
            rows.run(io, Backward { scale, io, lse, targets })
        }))
    }, else => not_float(name, x))
}

/// The labels, if the targets `t`, input `input`, are no weights.
fn labels(
    name: &'static str,
    input: usize,
    ignored: Option<i64>,
    x: &Meta,
    t: &Meta,
) -> Result<Option<Indices>> {
    Ok(has_labels(name, x, t)?.then(|| Indices::labels(name, input, x.shape[1], ignored, t)))
}

/// The labels are the targets, unless there are none.
#[derive(Clone, Copy)]
struct Targets<'a> {
    labels: Option<&'a [i64]>,
    /// The label of rows that do not count.
    ignored: Option<i64>,
}

impl Targets<'_> {
    fn counts(self, row: usize) -> bool {
        self.labels.is_none_or(|labels| Some(labels[row]) != self.ignored)
    }

    /// The number of rows that count.
    fn count(self, rows: usize) -> usize {
        (0..rows).filter(|&row| self.counts(row)).count()
    }
}

fn prepare(
    labels: Option<Indices>,
    width: Width,
    scratch: usize,
    run: impl Fn(&Io, Option<&[i64]>) -> Result<()> + Send + Sync + 'static,
) -> Arc<dyn Kernel> {
    match labels {
        Some(indices) => indexed(indices, width, scratch, move |io, labels| run(io, Some(labels))),
        None => kernel(scratch, move |io| run(io, None)),
    }
}

fn mean<W: Wide + Sum>(rows: &Rows<W>, io: &Io, targets: Targets) -> Result<()> {
    rows.run(io, Forward { rows, io, targets })?;
    let count = rows.others.elements();
    // SAFETY: each row wrote its loss.
    let losses = unsafe { std::slice::from_raw_parts(io.scratch::<f64>(), count) };
    let mean = W::of(losses.iter().sum::<f64>() / targets.count(count) as f64);
    // SAFETY: the loss has one element.
    unsafe { rows.access.store(&[mean], io.output(0), Run { start: 0, step: 1, length: 1 }) };
    Ok(())
}

/// Known are the greatest value, the logarithm of the sum of the exponentials, and the sums of the
/// weights and of their losses.
#[derive(Clone, Copy)]
struct Forward<'a, W> {
    rows: &'a Rows<W>,
    io: &'a Io<'a>,
    targets: Targets<'a>,
}

impl<W: Wide + Sum> RowFn<W, 2> for Forward<'_, W> {
    type Stat = f64;
    const SEEKS: bool = true;
    const MAPS: bool = false;

    #[inline(always)]
    fn sums(self) -> usize {
        if self.targets.labels.is_some() { 1 } else { 3 }
    }

    #[inline(always)]
    fn reads(self, pass: usize, input: usize) -> bool {
        if input == 0 { pass != 2 } else { pass > 1 }
    }

    #[inline(always)]
    fn greatest(self, value: W) -> f64 {
        value.to_f64()
    }

    #[inline(always)]
    fn prepared<L: Level>(self, x: W, [greatest, ..]: Known<f64>) -> W {
        (x - W::of(greatest)).exp::<L>()
    }

    #[inline(always)]
    fn keeps(self) -> bool {
        false
    }

    #[inline(always)]
    fn term<L: Level, const P: usize>(self, [x, w]: [W; 2], known: Known<f64>) -> f64 {
        match P {
            1 => x.to_f64(),
            2 => w.to_f64(),
            // Classes of weight 0 are ignored altogether.
            _ if w.to_f64() == 0.0 => 0.0,
            _ => w.to_f64() * behind(known, x),
        }
    }

    #[inline(always)]
    fn summed<const P: usize>(self, total: f64, known: &mut Known<f64>) {
        known[P] = if P == 1 { total.ln() } else { total };
        // Otherwise the order of the logits would decide whether a maximum among NaNs is NaN.
        known[0] = if known[1].is_nan() { known[1] } else { known[0] };
    }

    #[inline(always)]
    fn done(self, row: usize, known: Known<f64>) {
        let loss = match self.targets.labels {
            Some(_) if !self.targets.counts(row) => 0.0,
            Some(labels) => behind(known, self.x(row, labels[row])),
            None => known[3] / known[2],
        };
        // SAFETY: the scratch and the output have an element for each row.
        unsafe {
            self.io.scratch::<f64>().add(row).write(loss);
            self.io.output::<[f64; 2]>(1).add(row).write([known[0], known[1]]);
        }
    }
}

impl<W: Wide + Sum> Forward<'_, W> {
    /// The logit of a class.
    fn x(self, row: usize, class: i64) -> W {
        let (row, class) = (row as isize * self.rows.others.inner().strides[1], class as isize);
        let at = row + class * self.rows.axis.strides[1];
        // SAFETY: labels are checked.
        unsafe { self.rows.access.get(self.io.input(0), at) }
    }
}

/// The negative log-probability.
#[inline(always)]
fn behind<W: Wide>([most, rest, ..]: Known<f64>, x: W) -> f64 {
    rest + (most - x.to_f64())
}

/// Known are the forward pass's two numbers, the inverse of the sum of the weights, and whether the
/// row counts.
#[derive(Clone, Copy)]
struct Backward<'a, W> {
    io: &'a Io<'a>,
    /// dloss divided by the number of rows that count.
    scale: W,
    /// Strides of lse.
    lse: [isize; 2],
    targets: Targets<'a>,
}

impl<W: Wide + Sum> RowFn<W, 2> for Backward<'_, W> {
    type Stat = f64;

    #[inline(always)]
    fn sums(self) -> usize {
        if self.targets.labels.is_some() { 0 } else { 1 }
    }

    #[inline(always)]
    fn reads(self, pass: usize, input: usize) -> bool {
        pass > 1 || input == 1
    }

    #[inline(always)]
    fn start(self, row: usize) -> Known<f64> {
        let at = |n: isize| row as isize * self.lse[0] + n * self.lse[1];
        // SAFETY: lse has two elements for each row.
        let [most, rest] = [0, 1].map(|n| unsafe { *self.io.input::<f64>(3).offset(at(n)) });
        [most, rest, 1.0, self.targets.counts(row).into()]
    }

    /// The labels, as weights.
    #[inline(always)]
    fn makes(self, input: usize, row: usize, part: Range<usize>, to: &mut [W]) -> bool {
        let Some(labels) = self.targets.labels else { return false };
        if input == 1 {
            to.fill(W::ZERO);
            let label = labels[row] as usize;
            if part.contains(&label) {
                to[label - part.start] = W::ONE;
            }
        }
        input == 1
    }

    #[inline(always)]
    fn term<L: Level, const P: usize>(self, [_, w]: [W; 2], _: Known<f64>) -> f64 {
        w.to_f64()
    }

    #[inline(always)]
    fn summed<const P: usize>(self, total: f64, known: &mut Known<f64>) {
        known[2] = 1.0 / total;
    }

    #[inline(always)]
    fn element<L: Level>(self, [x, target]: [W; 2], [most, rest, share, counts]: Known<f64>) -> W {
        let softmax = W::of(x.to_f64() - most - rest).exp::<L>();
        let gradient = (softmax - target * W::of(share)) * self.scale;
        if counts == 0.0 { W::ZERO } else { gradient }
    }
}
