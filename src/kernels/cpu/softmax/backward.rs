//! The gradients of softmax and log-softmax.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;

use super::row::{Buffer, CHUNK, chunks, sum};
use super::{COLUMNS, Job, Plan, Tile, prepare};
use crate::kernels::cpu::isa::Level;
use crate::kernels::cpu::walk::Dim;
use crate::kernels::cpu::wide::{Port, Wide};
use crate::kernels::{Io, Kernel, Width};
use crate::ops::Meta;

/// Prepares (dy, y) -> dx.
pub fn backward<W: Wide>(
    io: &[&Meta],
    axis: usize,
    log: bool,
    port: Port<W>,
    width: Width,
) -> Arc<dyn Kernel> {
    prepare(Plan::new([io[2], io[0], io[1]], axis), Backward { port, log }, width)
}

#[derive(Clone, Copy)]
struct Backward<W> {
    port: Port<W>,
    log: bool,
}

impl<W: Wide> Backward<W> {
    /// The term that is summed along the axis.
    #[inline(always)]
    fn term(self, dy: W, y: W) -> f64 {
        dy.to_f64() * if self.log { 1.0 } else { y.to_f64() }
    }

    /// An element of dx, given the sum of its row.
    #[inline(always)]
    fn element<L: Level>(self, dy: W, y: W, sum: W) -> W {
        if self.log { dy - y.exp::<L>() * sum } else { y * (dy - sum) }
    }
}

impl<W: Wide> Job<3> for Backward<W> {
    type Wide = W;
    const HOLDS: bool = false;

    #[inline(always)]
    fn row<L: Level>(self, io: &Io, axis: Dim<3>, at: [isize; 3], [dy, y]: &mut [Buffer<W>; 2]) {
        let place = |t: usize, chunk: &Range<usize>| at[t] + chunk.start as isize * axis.strides[t];
        let load = |i: usize, chunk: &Range<usize>, values: &mut [W]| {
            let (from, step) = (place(i + 1, chunk), axis.strides[i + 1]);
            // SAFETY: the row is within the input.
            unsafe { self.port.load(io.input(i), from, step, &mut values[..chunk.len()]) }
        };
        let mut total = 0.0;
        for chunk in chunks(axis.extent) {
            load(0, &chunk, dy);
            load(1, &chunk, y);
            total += sum(&dy[..chunk.len()], &y[..chunk.len()], |dy, y| self.term(dy, y));
        }
        let total = W::of(total);
        for chunk in chunks(axis.extent) {
            if axis.extent > CHUNK {
                load(0, &chunk, dy);
                load(1, &chunk, y);
            }
            let values = &mut dy[..chunk.len()];
            for (dy, &y) in values.iter_mut().zip(y.iter()) {
                *dy = self.element::<L>(*dy, y, total);
            }
            // SAFETY: the row is within the output, and belongs to one thread.
            unsafe { self.port.store(values, io.output(0), place(0, &chunk), axis.strides[0]) };
        }
    }

    #[inline(always)]
    fn tile<L: Level>(
        self,
        io: &Io,
        axis: Dim<3>,
        Tile { at, steps, width }: Tile<3>,
        _: &mut [W],
    ) {
        let mut buffers = [[W::default(); COLUMNS]; 2];
        let [dy, y] = &mut buffers;
        let (dy, y) = (&mut dy[..width], &mut y[..width]);
        let place = |t: usize, i: usize| at[t] + i as isize * axis.strides[t];
        let load = |t: usize, i: usize, values: &mut [W]| {
            // SAFETY: the columns are within the input.
            unsafe { self.port.load(io.input(t - 1), place(t, i), steps[t], values) }
        };
        let mut total = [0.0; COLUMNS];
        for i in 0..axis.extent {
            load(1, i, dy);
            load(2, i, y);
            for ((total, &dy), &y) in total.iter_mut().zip(dy.iter()).zip(y.iter()) {
                *total += self.term(dy, y);
            }
        }
        let total = total.map(W::of);
        for i in 0..axis.extent {
            load(1, i, dy);
            load(2, i, y);
            for ((dy, &y), &total) in dy.iter_mut().zip(y.iter()).zip(&total) {
                *dy = self.element::<L>(*dy, y, total);
            }
            // SAFETY: the columns are within the output, and belong to one thread.
            unsafe { self.port.store(dy, io.output(0), place(0, i), steps[0]) };
        }
    }
}
