//! Softmax and cross entropy in one, and the gradient.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;

use super::isa::{self, Body, Isa, Level};
use super::softmax_row::{Buffer, CHUNK, chunks, scan, sum};
use super::wide::{Port, Wide};
use crate::device::team;
use crate::dtype::Element;
use crate::error::{Error, Result};
use crate::ops::{Io, Kernel, Meta, Width, kernel};

/// What stands in the tensor of targets.
#[derive(Clone, Copy)]
pub enum Targets {
    /// One class index a row.
    Labels {
        /// Reads the label at a place, or answers what else is there.
        read: unsafe fn(*const u8, isize) -> Result<i64, f64>,
        /// From one to the next.
        step: isize,
    },
    /// A weight for each class of each row.
    Weights {
        /// From row to row, and from class to class.
        steps: [isize; 2],
    },
}

impl Targets {
    /// Labels of type `T`.
    pub fn labels<T: Element>(step: isize) -> Targets {
        Targets::Labels { read: label::<T>, step }
    }
}

/// # Safety
/// The element can be read.
unsafe fn label<T: Element>(from: *const u8, at: isize) -> Result<i64, f64> {
    // SAFETY: by the caller's promise.
    let element = unsafe { *from.cast::<T>().offset(at) };
    let value = element.to_f64();
    if T::DTYPE.is_float() && value.fract() != 0.0 {
        return Err(value);
    }
    Ok(element.to_i64())
}

/// How the inputs lie.
pub struct Plan<W> {
    name: &'static str,
    rows: usize,
    classes: usize,
    x: [isize; 2],
    targets: Targets,
    port: Port<W>,
    /// Which input the targets are.
    input: usize,
}

impl<W: Wide> Plan<W> {
    /// For logits `x` of shape (rows, classes) and the targets that are input `input`.
    pub fn new(
        name: &'static str,
        x: &Meta,
        targets: Targets,
        input: usize,
        port: Port<W>,
    ) -> Self {
        let (rows, classes) = (x.shape[0], x.shape[1]);
        Plan { name, rows, classes, x: [x.strides[0], x.strides[1]], targets, port, input }
    }

    /// Work space for the labels, and for a number a row.
    fn scratch(&self) -> usize {
        self.rows * 16
    }

    /// Reads and checks the labels, if there are any, into the scratch.
    fn labels<'a>(&self, io: &Io<'a>) -> Result<&'a [i64]> {
        let Targets::Labels { read, step } = self.targets else { return Ok(&[]) };
        // SAFETY: the scratch was asked for; this is its second half.
        let labels = unsafe {
            std::slice::from_raw_parts_mut(io.scratch::<i64>().add(self.rows), self.rows)
        };
        for (row, label) in labels.iter_mut().enumerate() {
            // SAFETY: the place is that of a row's label.
            let read = unsafe { read(io.input(self.input), row as isize * step) };
            let want = "a class index without a fraction";
            *label = read.map_err(|value| Error::value(self.name, value, want))?;
            let inside = (0..self.classes as i64).contains(label);
            let op = || self.name.into();
            crate::ensure!(inside, Error::Index { op: op(), index: *label, size: self.classes });
        }
        Ok(labels)
    }

    /// Reads part of a row of `x`, which is input `i`.
    #[inline(always)]
    fn load_x(&self, io: &Io, i: usize, row: usize, part: &Range<usize>, to: &mut [W]) {
        self.load(io, i, self.x, row, part, to);
    }

    #[inline(always)]
    fn load(
        &self,
        io: &Io,
        i: usize,
        steps: [isize; 2],
        row: usize,
        part: &Range<usize>,
        to: &mut [W],
    ) {
        let at = row as isize * steps[0] + part.start as isize * steps[1];
        // SAFETY: the part lies within the row.
        unsafe { self.port.load(io.input(i), at, steps[1], &mut to[..part.len()]) }
    }

    /// The sum of a row's weights.
    #[inline(always)]
    fn weight(&self, io: &Io, steps: [isize; 2], row: usize, buffer: &mut Buffer<W>) -> f64 {
        let mut total = 0.0;
        for chunk in chunks(self.classes) {
            self.load(io, self.input, steps, row, &chunk, buffer);
            let weights = &buffer[..chunk.len()];
            total += sum(weights, weights, |w, _| w.to_f64());
        }
        total
    }
}

/// Prepares (x, t) -> (loss, lse): the mean over the rows, and each row's logarithm of the sum
/// of exponentials in float64.
pub fn forward<W: Wide>(plan: Plan<W>, width: Width) -> Arc<dyn Kernel> {
    kernel(plan.scratch(), move |io| {
        let labels = plan.labels(io)?;
        team::parallel(width.0, &|part| {
            let range = team::share(plan.rows, 1, width.0, part);
            isa::run(Isa::active(), Forward { plan: &plan, io, labels, range });
        })?;
        // SAFETY: the rows wrote the first half of the scratch.
        let losses = unsafe { std::slice::from_raw_parts(io.scratch::<f64>(), plan.rows) };
        let mean = losses.iter().sum::<f64>() / plan.rows as f64;
        // SAFETY: the loss has one element.
        unsafe { plan.port.store(&[W::of(mean)], io.output(0), 0, 1) };
        Ok(())
    })
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
            let lse = most.to_f64() + total.ln();
            let loss = match self.plan.targets {
                Targets::Labels { .. } => {
                    let label = self.labels[row] as usize;
                    load(&(label..label + 1), &mut buffers[0]);
                    lse - buffers[0][0].to_f64()
                }
                Targets::Weights { steps } => self.weighted(row, lse, steps, &mut buffers),
            };
            // SAFETY: the scratch and the output have an element for each row.
            unsafe {
                self.io.scratch::<f64>().add(row).write(loss);
                self.io.output::<f64>(1).add(row).write(lse);
            }
        }
    }
}

impl<W: Wide> Forward<'_, W> {
    /// The mean of lse - x over a row's weights; classes of weight 0 do not count at all.
    #[inline(always)]
    fn weighted(
        &self,
        row: usize,
        lse: f64,
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
                if w == 0.0 { 0.0 } else { w * (lse - x.to_f64()) }
            });
        }
        loss / total
    }
}

/// Prepares (dloss, x, t, lse) -> dx with these steps from row to row and class to class.
pub fn backward<W: Wide>(
    plan: Plan<W>,
    dx: [isize; 2],
    lse: isize,
    width: Width,
) -> Arc<dyn Kernel> {
    kernel(plan.scratch(), move |io| {
        let labels = plan.labels(io)?;
        let mut scale = [W::default()];
        // SAFETY: dloss has one element.
        unsafe { plan.port.load(io.input(0), 0, 1, &mut scale) };
        let scale = scale[0].to_f64() / plan.rows as f64;
        team::parallel(width.0, &|part| {
            let range = team::share(plan.rows, 1, width.0, part);
            let body = Backward { plan: &plan, io, labels, range, dx, lse, scale };
            isa::run(Isa::active(), body);
        })
    })
}

struct Backward<'a, W> {
    plan: &'a Plan<W>,
    io: &'a Io<'a>,
    labels: &'a [i64],
    range: Range<usize>,
    dx: [isize; 2],
    /// From row to row of lse.
    lse: isize,
    /// dloss divided by the number of rows.
    scale: f64,
}

impl<W: Wide> Body for Backward<'_, W> {
    type Output = ();

    #[inline(always)]
    fn run<L: Level>(self) {
        let mut buffers = [[W::default(); CHUNK]; 2];
        for row in self.range.clone() {
            // SAFETY: lse has an element for each row.
            let lse = unsafe { *self.io.input::<f64>(3).offset(row as isize * self.lse) };
            self.row::<L>(row, lse, &mut buffers);
        }
    }
}

impl<W: Wide> Backward<'_, W> {
    #[inline(always)]
    fn row<L: Level>(&self, row: usize, lse: f64, [x, w]: &mut [Buffer<W>; 2]) {
        let (plan, io) = (self.plan, self.io);
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
                let softmax = W::of(value.to_f64() - lse).exp::<L>();
                *value = (softmax - target * share) * scale;
            }
            let at = row as isize * self.dx[0] + chunk.start as isize * self.dx[1];
            // SAFETY: the part lies within the row, which belongs to one thread.
            unsafe { plan.port.store(values, io.output(0), at, self.dx[1]) };
        }
    }

    /// The targets of a part of a row, as weights.
    #[inline(always)]
    fn targets(&self, row: usize, part: &Range<usize>, to: &mut [W]) {
        match self.plan.targets {
            Targets::Weights { steps } => {
                self.plan.load(self.io, self.plan.input, steps, row, part, to);
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
