//! The gradient of the loss.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;

use super::{Plan, Targets};
use crate::device::team;
use crate::error::Result;
use crate::kernels::cpu::isa::{self, Body, Isa, Level};
use crate::kernels::cpu::softmax::row::{Buffer, CHUNK, chunks};
use crate::kernels::cpu::wide::Wide;
use crate::kernels::{Io, Kernel, Width};

/// Prepares (dloss, x, t, lse) -> dx; `dx` and `lse` are the strides of those tensors along their
/// two axes.
pub(super) fn backward<W: Wide>(
    plan: Plan<W>,
    dx: [isize; 2],
    lse: [isize; 2],
    width: Width,
) -> Arc<dyn Kernel> {
    Arc::new(Gradient { plan, dx, lse, width })
}

struct Gradient<W> {
    plan: Plan<W>,
    dx: [isize; 2],
    lse: [isize; 2],
    width: Width,
}

impl<W: Wide> Kernel for Gradient<W> {
    fn scratch(&self) -> usize {
        self.plan.scratch()
    }

    fn check(&self, io: &Io) -> Result<()> {
        self.plan.each_label(io, |_| ())
    }

    fn run(&self, io: &Io) -> Result<()> {
        let (plan, width) = (&self.plan, self.width.0);
        let labels = plan.labels(io)?;
        let mut scale = [W::default()];
        // SAFETY: dloss has one element.
        unsafe { plan.port.load(io.input(0), 0, 1, &mut scale) };
        let scale = scale[0].to_f64() / plan.rows as f64;
        team::parallel(width, &|part| {
            let range = team::share(plan.rows, 1, width, part);
            isa::run(Isa::active(), Backward { this: self, io, labels, range, scale });
        })
    }
}

struct Backward<'a, W> {
    this: &'a Gradient<W>,
    io: &'a Io<'a>,
    labels: &'a [i64],
    range: Range<usize>,
    /// dloss divided by the number of rows.
    scale: f64,
}

impl<W: Wide> Body for Backward<'_, W> {
    type Output = ();

    #[inline(always)]
    fn run<L: Level>(self) {
        let mut buffers = [[W::default(); CHUNK]; 2];
        for row in self.range.clone() {
            let at = |n: isize| row as isize * self.this.lse[0] + n * self.this.lse[1];
            // SAFETY: lse has two elements for each row.
            let lse = [0, 1].map(|n| unsafe { *self.io.input::<f64>(3).offset(at(n)) });
            self.row::<L>(row, lse, &mut buffers);
        }
    }
}

impl<W: Wide> Backward<'_, W> {
    #[inline(always)]
    fn row<L: Level>(&self, row: usize, [most, rest]: [f64; 2], [x, w]: &mut [Buffer<W>; 2]) {
        let (plan, io, dx) = (&self.this.plan, self.io, self.this.dx);
        let share = match plan.targets {
            Targets::Weights { steps } => 1.0 / plan.weight(io, steps, row, w),
            Targets::Labels { .. } => 1.0,
        };
        let (scale, share) = (W::of(self.scale), W::of(share));
        for chunk in chunks(plan.classes) {
            plan.load_x(io, 1, row, &chunk, x);
            self.targets(row, &chunk, w);
            let values = &mut x[..chunk.len()];
            for (value, &target) in values.iter_mut().zip(w.iter()) {
                let softmax = W::of(value.to_f64() - most - rest).exp::<L>();
                *value = (softmax - target * share) * scale;
            }
            let at = row as isize * dx[0] + chunk.start as isize * dx[1];
            // SAFETY: the part is within the row, which belongs to one thread.
            unsafe { plan.port.store(values, io.output(0), at, dx[1]) };
        }
    }

    /// The targets of a part of a row, as weights.
    #[inline(always)]
    fn targets(&self, row: usize, part: &Range<usize>, to: &mut [W]) {
        let plan = &self.this.plan;
        match plan.targets {
            Targets::Weights { steps } => {
                plan.load(self.io, plan.input, steps, row, part, to);
            }
            Targets::Labels { .. } => {
                to[..part.len()].fill(W::default());
                let label = self.labels[row] as usize;
                if part.contains(&label) {
                    to[label - part.start] = W::of(1.0);
                }
            }
        }
    }
}
