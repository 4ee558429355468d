//! Softmax and cross entropy in one, and the gradient.
#![allow(unsafe_code)]

mod backward;
mod forward;

use std::ops::Range;

use super::softmax::row::{Buffer, chunks, sum};
use super::whole::{self, Read};
use super::wide::{Port, Wide};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernels::Io;
use crate::ops::Meta;
pub use backward::backward;
pub use forward::forward;

/// The meaning of the tensor of targets.
#[derive(Clone, Copy)]
pub enum Targets {
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
    /// Labels of a dtype.
    pub fn labels(dtype: DType, step: isize) -> Targets {
        Targets::Labels { read: whole::reader(dtype), step }
    }
}

/// The layout of the inputs.
pub struct Plan<W> {
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
