//! The loss.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;

use super::{Plan, Targets};
use crate::device::team;
use crate::error::Result;
use crate::kernels::cpu::isa::{self, Body, Isa, Level};
use crate::kernels::cpu::softmax::row::{Buffer, CHUNK, chunks, scan, sum};
use crate::kernels::cpu::wide::Wide;
use crate::kernels::{Io, Kernel, Width};

/// Prepares (x, t) -> (loss, lse): the mean over the rows, and for each row, in float64, its
/// maximum and the logarithm of the sum of the exponentials relative to it.
pub(super) fn forward<W: Wide>(plan: Plan<W>, width: Width) -> Arc<dyn Kernel> {
    Arc::new(Loss { plan, width })
}

struct Loss<W> {
    plan: Plan<W>,
    width: Width,
}

impl<W: Wide> Kernel for Loss<W> {
    fn scratch(&self) -> usize {
        self.plan.scratch()
    }

    fn check(&self, io: &Io) -> Result<()> {
        self.plan.each_label(io, |_| ())
    }

    fn run(&self, io: &Io) -> Result<()> {
        let Loss { plan, width } = self;
        let labels = plan.labels(io)?;
        team::parallel(width.0, &|part| {
            let range = team::share(plan.rows, 1, width.0, part);
            isa::run(Isa::active(), Forward { plan, io, labels, range });
        })?;
        // SAFETY: the rows wrote the first half of the scratch.
        let losses = unsafe { std::slice::from_raw_parts(io.scratch::<f64>(), plan.rows) };
        let mean = losses.iter().sum::<f64>() / plan.rows as f64;
        // SAFETY: the loss has one element.
        unsafe { plan.port.store(&[W::of(mean)], io.output(0), 0, 1) };
        Ok(())
    }
}

struct Forward<'a, W> {
    plan: &'a Plan<W>,
    io: &'a Io<'a>,
    labels: &'a [i64],
    range: Range<usize>,
}

impl<W: Wide> Body for Forward<'_, W> {
    type Output = ();

    #[inline(always)]
    fn run<L: Level>(self) {
        let mut buffers = [[W::default(); CHUNK]; 2];
        for row in self.range.clone() {
            let load =
                |part: &Range<usize>, to: &mut [W]| self.plan.load_x(self.io, 0, row, part, to);
            let (most, total) = scan::<L, W>(self.plan.classes, &mut buffers[0], load);
            let rest = total.ln();
            // Otherwise the order of the logits would decide whether a maximum among NaNs is NaN.
            let lse = [if rest.is_nan() { rest } else { most.to_f64() }, rest];
            let loss = match self.plan.targets {
                Targets::Labels { .. } => {
                    let label = self.labels[row] as usize;
                    load(&(label..label + 1), &mut buffers[0]);
                    behind(lse, buffers[0][0])
                }
                Targets::Weights { steps } => self.weighted(row, lse, steps, &mut buffers),
            };
            // SAFETY: the scratch and the output have an element for each row.
            unsafe {
                self.io.scratch::<f64>().add(row).write(loss);
                self.io.output::<[f64; 2]>(1).add(row).write(lse);
            }
        }
    }
}

/// The negative log-probability.
#[inline(always)]
fn behind<W: Wide>([most, rest]: [f64; 2], x: W) -> f64 {
    rest + (most - x.to_f64())
}

impl<W: Wide> Forward<'_, W> {
    /// The mean of lse - x over a row's weights; classes of weight 0 are ignored altogether.
    #[inline(always)]
    fn weighted(
        &self,
        row: usize,
        lse: [f64; 2],
        steps: [isize; 2],
        buffers: &mut [Buffer<W>; 2],
    ) -> f64 {
        let (plan, [x, w]) = (self.plan, buffers);
        let total = plan.weight(self.io, steps, row, w);
        let mut loss = 0.0;
        for chunk in chunks(plan.classes) {
            plan.load_x(self.io, 0, row, &chunk, x);
            plan.load(self.io, plan.input, steps, row, &chunk, w);
            loss += sum(&x[..chunk.len()], &w[..chunk.len()], |x, w| {
                let w = w.to_f64();
                if w == 0.0 { 0.0 } else { w * behind(lse, x) }
            });
        }
        loss / total
    }
}
