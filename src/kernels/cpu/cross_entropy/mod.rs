//! Softmax and cross entropy in one, and the gradient.
#![allow(unsafe_code)]

mod backward;
mod forward;

use std::ops::Range;
use std::sync::Arc;

use super::not_float;
use super::softmax::row::{Buffer, chunks, sum};
use super::whole::{self, Read};
use super::wide::{Port, Wide};
use crate::error::{Error, Result};
use crate::kernels::{Io, Kernel, Width};
use crate::ops::cross_entropy::{SoftmaxCrossEntropy, SoftmaxCrossEntropyGrad, has_labels};
use crate::ops::{Family, Meta};
use backward::backward;
use forward::forward;

/// Prepares (x, t) -> (loss, lse).
///
/// # Errors
/// [`Error::DType`] and [`Error::Shape`] for other targets than the operation takes.
pub fn loss(op: &SoftmaxCrossEntropy, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let (name, x) = (op.name(), io[0]);
    let targets = Targets::of(name, x, io[1])?;
    crate::dispatch!(float x.dtype,
        T => Ok(forward(Plan::new(name, x, targets, 1, Port::of::<T>()), width)),
        else => not_float(name, x))
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
    let (name, x) = (op.name(), io[1]);
    let targets = Targets::of(name, x, io[2])?;
    let steps = |meta: &Meta| [meta.strides[0], meta.strides[1]];
    let (dx, lse) = (steps(io[4]), steps(io[3]));
    crate::dispatch!(float x.dtype,
        T => Ok(backward(Plan::new(name, x, targets, 2, Port::of::<T>()), dx, lse, width)),
        else => not_float(name, x))
}

/// The meaning of the tensor of targets.
#[derive(Clone, Copy)]
enum Targets {
    /// One class index per row.
    Labels {
        /// Reads one label.
        read: Read,
        /// The stride from label to label.
        step: isize,
    },
    /// A weight for each class of each row.
    Weights {
        /// Strides from row to row, and from class to class.
        steps: [isize; 2],
    },
}

impl Targets {
    /// The targets `t` of logits `x`.
    fn of(op: &'static str, x: &Meta, t: &Meta) -> Result<Targets> {
        Ok(match has_labels(op, x, t)? {
            true => Targets::Labels { read: whole::reader(t.dtype), step: t.strides[0] },
            false => Targets::Weights { steps: [t.strides[0], t.strides[1]] },
        })
    }
}

/// The layout of the inputs.
struct Plan<W> {
    name: &'static str,
    rows: usize,
    classes: usize,
    x: [isize; 2],
    targets: Targets,
    port: Port<W>,
    /// The number of the input that holds the targets.
    input: usize,
}

impl<W: Wide> Plan<W> {
    /// For logits `x` of shape (rows, classes) and the targets that are input `input`.
    fn new(name: &'static str, x: &Meta, targets: Targets, input: usize, port: Port<W>) -> Self {
        let (rows, classes) = (x.shape[0], x.shape[1]);
        Plan { name, rows, classes, x: [x.strides[0], x.strides[1]], targets, port, input }
    }

    /// Scratch memory for the labels, and for a number per row.
    fn scratch(&self) -> usize {
        self.rows * 16
    }

    /// Passes the labels, if there are any, to `visit`.
    ///
    /// # Errors
    /// [`Error::Index`] or [`Error::Value`] at the first label that is not a class.
    fn each_label(&self, io: &Io, mut visit: impl FnMut(i64)) -> Result<()> {
        let Targets::Labels { read, step } = self.targets else { return Ok(()) };
        for row in 0..self.rows as isize {
            // SAFETY: this is the position of a row's label.
            let label = unsafe { read(io.input(self.input), row * step) };
            let want = "a class index without a fraction";
            let index = label.map_err(|value| Error::value(self.name, value, want))?;
            let inside = (0..self.classes as i64).contains(&index);
            let op = || self.name.into();
            crate::ensure!(inside, Error::Index { op: op(), index, size: self.classes });
            visit(index);
        }
        Ok(())
    }

    /// Reads and checks the labels, if there are any, into the scratch.
    fn labels<'a>(&self, io: &Io<'a>) -> Result<&'a [i64]> {
        // SAFETY: the scratch memory was requested; this is its second half.
        let labels = unsafe {
            std::slice::from_raw_parts_mut(io.scratch::<i64>().add(self.rows), self.rows)
        };
        let mut to = labels.iter_mut();
        self.each_label(io, |label| *to.next().expect("a place for each row") = label)?;
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
        // SAFETY: the part is within the row.
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
