//! Softmax, log-softmax and their gradients along any axis: row by row where the axis is
//! innermost in memory, else for neighbouring columns together. Either way the loops vectorise.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;

use super::isa::{self, Body, Isa, Level};
use super::softmax_row::{Buffer, CHUNK, chunks, exponentials, scan, sum};
use super::walk::{Dim, Walk, dims};
use super::wide::{Port, Wide};
use crate::device::team;
use crate::ops::{Io, Kernel, Meta, Width, kernel};

/// Columns that are computed together.
const COLUMNS: usize = 64;

/// How `N` tensors are gone through, the output first.
struct Plan<const N: usize> {
    axis: Dim<N>,
    /// All other dimensions, in the output's memory order.
    others: Walk<N>,
    /// These but for the innermost, and the innermost, if columns are computed together.
    columns: Option<(Walk<N>, Dim<N>)>,
}

impl<const N: usize> Plan<N> {
    fn new(metas: [&Meta; N], axis: usize) -> Self {
        let mut others = dims(metas);
        let axis = others.remove(axis);
        others.sort_by_key(|d| std::cmp::Reverse(d.strides[0].unsigned_abs()));
        let others = Walk::new(others);
        let inner = others.inner();
        let is_outer = axis.strides[0].unsigned_abs() > inner.strides[0].unsigned_abs();
        let wide = is_outer && others.elements() > 0 && inner.extent >= 8;
        Plan { axis, columns: wide.then(|| others.clone().split_inner()), others }
    }

    fn tasks(&self) -> usize {
        match &self.columns {
            Some((outer, inner)) => outer.elements() * inner.extent.div_ceil(COLUMNS),
            None => self.others.elements(),
        }
    }
}

/// Columns next to each other: where the first elements are, and the steps from each to the next.
struct Tile<const N: usize> {
    at: [isize; N],
    steps: [isize; N],
    width: usize,
}

/// What is computed of each row along the axis.
trait Job<const N: usize>: Copy + Send + Sync + 'static {
    type Wide: Wide;
    /// Of the row whose first elements are at places `at`.
    fn row<L: Level>(
        self,
        io: &Io,
        axis: Dim<N>,
        at: [isize; N],
        buffers: &mut [Buffer<Self::Wide>; 2],
    );
    /// Of the columns of a tile.
    fn tile<L: Level>(self, io: &Io, axis: Dim<N>, tile: Tile<N>);
}

fn prepare<const N: usize, J: Job<N>>(plan: Plan<N>, job: J, width: Width) -> Arc<dyn Kernel> {
    kernel(0, move |io| {
        team::parallel(width.0, &|part| {
            let range = team::share(plan.tasks(), 1, width.0, part);
            isa::run(Isa::active(), Part { plan: &plan, io, job, range });
        })
    })
}

struct Part<'a, const N: usize, J> {
    plan: &'a Plan<N>,
    io: &'a Io<'a>,
    job: J,
    range: Range<usize>,
}

impl<const N: usize, J: Job<N>> Body for Part<'_, N, J> {
    type Output = ();

    #[inline(always)]
    fn run<L: Level>(self) {
        match &self.plan.columns {
            None => self.rows::<L>(),
            Some((outer, inner)) => self.columns::<L>(outer, inner),
        }
    }
}

impl<const N: usize, J: Job<N>> Part<'_, N, J> {
    #[inline(always)]
    fn rows<L: Level>(self) {
        let mut buffers = [[J::Wide::default(); CHUNK]; 2];
        let (others, axis) = (&self.plan.others, self.plan.axis);
        let steps = others.inner().strides;
        others.runs(self.range, |mut at, n| {
            for _ in 0..n {
                self.job.row::<L>(self.io, axis, at, &mut buffers);
                (0..N).for_each(|t| at[t] += steps[t]);
            }
        });
    }

    #[inline(always)]
    fn columns<L: Level>(self, outer: &Walk<N>, inner: &Dim<N>) {
        let tiles = inner.extent.div_ceil(COLUMNS);
        for task in self.range {
            let (o, first) = (task / tiles, task % tiles * COLUMNS);
            let width = COLUMNS.min(inner.extent - first);
            outer.runs(o..o + 1, |mut at, _| {
                (0..N).for_each(|t| at[t] += inner.strides[t] * first as isize);
                let tile = Tile { at, steps: inner.strides, width };
                self.job.tile::<L>(self.io, self.plan.axis, tile);
            });
        }
    }
}

/// Prepares x -> y, of softmax or its logarithm.
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
            // SAFETY: the row lies within the input.
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
                values.iter_mut().for_each(|value| *value = (*value - most) - log);
            } else {
                if !held {
                    exponentials::<L, W>(values, most);
                }
                let scale = W::of(1.0 / total);
                values.iter_mut().for_each(|value| *value = *value * scale);
            }
            // SAFETY: the row lies within the output, and belongs to one thread.
            unsafe { self.port.store(values, io.output(0), place(0, &chunk), to) };
        }
    }

    #[inline(always)]
    fn tile<L: Level>(self, io: &Io, axis: Dim<2>, Tile { at, steps, width }: Tile<2>) {
        let mut buffer = [W::default(); COLUMNS];
        let values = &mut buffer[..width];
        let place = |t: usize, i: usize| at[t] + i as isize * axis.strides[t];
        let load = |i: usize, values: &mut [W]| {
            // SAFETY: the columns lie within the input.
            unsafe { self.port.load(io.input(0), place(1, i), steps[1], values) }
        };
        let mut most = [W::of(f64::NEG_INFINITY); COLUMNS];
        for i in 0..axis.extent {
            load(i, values);
            let pairs = most.iter_mut().zip(values.iter());
            pairs.for_each(|(most, &value)| *most = if value > *most { value } else { *most });
        }
        let mut total = [0.0; COLUMNS];
        for i in 0..axis.extent {
            load(i, values);
            for ((total, &value), &most) in total.iter_mut().zip(values.iter()).zip(&most) {
                *total += (value - most).exp::<L>().to_f64();
            }
        }
        let last = total.map(|total| W::of(if self.log { total.ln() } else { 1.0 / total }));
        for i in 0..axis.extent {
            load(i, values);
            for ((value, &most), &last) in values.iter_mut().zip(&most).zip(&last) {
                let shifted = *value - most;
                *value = if self.log { shifted - last } else { shifted.exp::<L>() * last };
            }
            // SAFETY: the columns lie within the output, and belong to one thread.
            unsafe { self.port.store(values, io.output(0), place(0, i), steps[0]) };
        }
    }
}

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
    /// What is summed along the axis.
    #[inline(always)]
    fn term(self, dy: W, y: W) -> f64 {
        dy.to_f64() * if self.log { 1.0 } else { y.to_f64() }
    }

    /// An element of dx, from the sum of its row.
    #[inline(always)]
    fn element<L: Level>(self, dy: W, y: W, sum: W) -> W {
        if self.log { dy - y.exp::<L>() * sum } else { y * (dy - sum) }
    }
}

impl<W: Wide> Job<3> for Backward<W> {
    type Wide = W;

    #[inline(always)]
    fn row<L: Level>(self, io: &Io, axis: Dim<3>, at: [isize; 3], [dy, y]: &mut [Buffer<W>; 2]) {
        let place = |t: usize, chunk: &Range<usize>| at[t] + chunk.start as isize * axis.strides[t];
        let load = |i: usize, chunk: &Range<usize>, values: &mut [W]| {
            let (from, step) = (place(i + 1, chunk), axis.strides[i + 1]);
            // SAFETY: the row lies within the input.
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
            // SAFETY: the row lies within the output, and belongs to one thread.
            unsafe { self.port.store(values, io.output(0), place(0, &chunk), axis.strides[0]) };
        }
    }

    #[inline(always)]
    fn tile<L: Level>(self, io: &Io, axis: Dim<3>, Tile { at, steps, width }: Tile<3>) {
        let mut buffers = [[W::default(); COLUMNS]; 2];
        let [dy, y] = &mut buffers;
        let (dy, y) = (&mut dy[..width], &mut y[..width]);
        let place = |t: usize, i: usize| at[t] + i as isize * axis.strides[t];
        let load = |t: usize, i: usize, values: &mut [W]| {
            // SAFETY: the columns lie within the input.
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
            // SAFETY: the columns lie within the output, and belong to one thread.
            unsafe { self.port.store(dy, io.output(0), place(0, i), steps[0]) };
        }
    }
}
