//! Softmax and log-softmax.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;

use super::row::{Buffer, CHUNK, chunks, exponentials, scan};
use super::{COLUMNS, Job, Plan, Tile, prepare};
use crate::kernels::cpu::isa::Level;
use crate::kernels::cpu::walk::Dim;
use crate::kernels::cpu::wide::{Port, Wide};
use crate::kernels::{Io, Kernel, Width};
use crate::ops::Meta;

/// Prepares x -> y, for softmax or its logarithm.
pub fn forward<W: Wide>(
    io: &[&Meta],
    axis: usize,
    log: bool,
    port: Port<W>,
    width: Width,
) -> Arc<dyn Kernel> {
    prepare(Plan::new([io[1], io[0]], axis), Forward { port, log }, width)
}

#[derive(Clone, Copy)]
struct Forward<W> {
    port: Port<W>,
    log: bool,
}

impl<W: Wide> Job<2> for Forward<W> {
    type Wide = W;
    const HOLDS: bool = true;

    #[inline(always)]
    fn row<L: Level>(
        self,
        io: &Io,
        axis: Dim<2>,
        at: [isize; 2],
        [buffer, _]: &mut [Buffer<W>; 2],
    ) {
        let [to, from] = axis.strides;
        let place = |t: usize, chunk: &Range<usize>| at[t] + chunk.start as isize * axis.strides[t];
        let load = |chunk: &Range<usize>, values: &mut [W]| {
            // SAFETY: the row is within the input.
            unsafe { self.port.load(io.input(0), place(1, chunk), from, values) }
        };
        let (most, total) = scan::<L, W>(axis.extent, buffer, load);
        let held = axis.extent <= CHUNK && !self.log;
        for chunk in chunks(axis.extent) {
            let values = &mut buffer[..chunk.len()];
            if !held {
                load(&chunk, values);
            }
            if self.log {
                let log = W::of(total.ln());
                for value in values.iter_mut() {
                    *value = (*value - most) - log;
                }
            } else {
                if !held {
                    exponentials::<L, W>(values, most);
                }
                let scale = W::of(1.0 / total);
                for value in values.iter_mut() {
                    *value = *value * scale;
                }
            }
            // SAFETY: the row is within the output, and belongs to one thread.
            unsafe { self.port.store(values, io.output(0), place(0, &chunk), to) };
        }
    }

    #[inline(always)]
    fn tile<L: Level>(
        self,
        io: &Io,
        axis: Dim<2>,
        Tile { at, steps, width }: Tile<2>,
        buffer: &mut [W],
    ) {
        let held = axis.extent * width <= buffer.len();
        let slot = |i: usize| if held { i * width..(i + 1) * width } else { 0..width };
        let place = |t: usize, i: usize| at[t] + i as isize * axis.strides[t];
        let load = |i: usize, values: &mut [W]| {
            // SAFETY: the columns are within the input.
            unsafe { self.port.load(io.input(0), place(1, i), steps[1], values) }
        };
        let mut most = [W::of(f64::NEG_INFINITY); COLUMNS];
        for i in 0..axis.extent {
            let values = &mut buffer[slot(i)];
            load(i, values);
            for (most, &value) in most.iter_mut().zip(values.iter()) {
                *most = if value > *most { value } else { *most };
            }
        }
        let mut total = [0.0; COLUMNS];
        for i in 0..axis.extent {
            let values = &mut buffer[slot(i)];
            if !held {
                load(i, values);
            }
            for ((total, value), &most) in total.iter_mut().zip(values).zip(&most) {
                let shifted = *value - most;
                let exponential = shifted.exp::<L>();
                *total += exponential.to_f64();
                *value = if self.log { shifted } else { exponential };
            }
        }
        let last = total.map(|total| W::of(if self.log { total.ln() } else { 1.0 / total }));
        for i in 0..axis.extent {
            let values = &mut buffer[slot(i)];
            if !held {
                load(i, values);
                for (value, &most) in values.iter_mut().zip(&most) {
                    let shifted = *value - most;
                    *value = if self.log { shifted } else { shifted.exp::<L>() };
                }
            }
            for (value, &last) in values.iter_mut().zip(&last) {
                *value = if self.log { *value - last } else { *value * last };
            }
            // SAFETY: the columns are within the output, and belong to one thread.
            unsafe { self.port.store(values, io.output(0), place(0, i), steps[0]) };
        }
    }
}
