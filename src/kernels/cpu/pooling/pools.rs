//! The mean and the maximum of each window, and their gradients.
#![allow(unsafe_code)]

use super::rows::{Row, Rows, Windows};
use super::{Buffers, RowSplit};
use crate::kernels::Io;
use crate::kernels::cpu::matmul::tile::Sum;
use crate::kernels::cpu::simd::wide::Wide;
use crate::kernels::cpu::strided::access::Access;
use crate::ops::pooling::Mean;

/// Windows with more columns than this are summed row by row first, which rounds less.
const LONG: usize = 8;

/// The computation of a row of the result.
pub(super) trait Pool<A>: Send + Sync + 'static {
    /// The lengths of the buffers of partial sums and of the index.
    fn room(&self, split: &RowSplit) -> [usize; 2];

    /// Computes a row in the buffer.
    fn row(&self, split: &RowSplit, access: Access<A>, io: &Io, row: Row, buffers: &mut Buffers<A>);
}

/// The divisor of each window's sum: the product of all directions' entries.
pub(super) struct Counts([Vec<usize>; 3]);

impl Counts {
    pub(super) fn new(windows: &Windows, mean: &Mean) -> Counts {
        let count = |d: usize, window: usize| match (mean.divisor, mean.count_include_pad) {
            (Some(divisor), _) => {
                if d == 0 {
                    divisor
                } else {
                    1
                }
            }
            (None, true) => windows.padded(d, window),
            (None, false) => windows.taps(d, window).len(),
        };
        Counts([0, 1, 2].map(|d| (0..windows.output[d]).map(|w| count(d, w)).collect()))
    }

    /// Divides a row of windows with `lanes` channels.
    #[inline(always)]
    fn divide<A: Wide>(&self, row: Row, lanes: usize, values: &mut [A]) {
        let [layer, line] = row.at;
        let rows = self.0[0][layer] * self.0[1][line];
        for (values, across) in values.chunks_exact_mut(lanes).zip(&self.0[2]) {
            let count = A::from_f64((rows * across) as f64);
            values.iter_mut().for_each(|value| *value = *value / count);
        }
    }
}

/// The mean of each window.
pub(super) struct Average(pub(super) Counts);

impl<A: Wide + Sum> Pool<A> for Average {
    fn room(&self, split: &RowSplit) -> [usize; 2] {
        [split.to.len(), 0]
    }

    #[inline(always)]
    fn row(
        &self,
        split: &RowSplit,
        access: Access<A>,
        io: &Io,
        row: Row,
        Buffers { from, to, partial, .. }: &mut Buffers<A>,
    ) {
        let (windows, lanes) = (&split.windows, split.to.lanes());
        let is_long = windows.kernel[2] > LONG;
        to.fill(A::ZERO);
        for (_, seen_row) in split.seen_by(row) {
            // SAFETY: input 0 is the image.
            let seen = unsafe { split.from.read(access, io.input(0), seen_row, from) };
            let sums = if is_long { &mut **partial } else { &mut **to };
            if is_long {
                sums.fill(A::ZERO);
            }
            for right in 0..windows.kernel[2] {
                windows.seen(right, lanes, |at, first, step| {
                    add(&mut sums[at], 1, &seen[first..], step);
                });
            }
            if is_long {
                add(to, 1, partial, 1);
            }
        }
        self.0.divide(row, lanes, to);
    }
}

/// The gradient of [`Average`].
pub(super) struct AverageGrad(pub(super) Counts);

impl<A: Wide + Sum> Pool<A> for AverageGrad {
    fn room(&self, _: &RowSplit) -> [usize; 2] {
        [0, 0]
    }

    #[inline(always)]
    fn row(
        &self,
        split: &RowSplit,
        access: Access<A>,
        io: &Io,
        row: Row,
        Buffers { from: dy, to: dx, .. }: &mut Buffers<A>,
    ) {
        let (windows, lanes) = (&split.windows, split.to.lanes());
        dx.fill(A::ZERO);
        for (_, window) in split.seeing(row) {
            // SAFETY: input 0 is dy.
            unsafe { split.from.copy(access, io.input(0), window, dy) };
            self.0.divide(window, lanes, dy);
            for right in 0..windows.kernel[2] {
                windows.seen(right, lanes, |at, first, step| {
                    add(&mut dx[first..], step, &dy[at], 1);
                });
            }
        }
    }
}

/// `to[i * to_step] += from[i * step]` while both are within their slices.
#[inline(always)]
fn add<A: Wide>(to: &mut [A], to_step: usize, from: &[A], step: usize) {
    if to_step == 1 && step == 1 {
        to.iter_mut().zip(from).for_each(|(to, from)| *to = *to + *from);
    } else {
        let from = from.iter().step_by(step);
        to.iter_mut().step_by(to_step).zip(from).for_each(|(to, from)| *to = *to + *from);
    }
}

/// The maximum of each window; the rows are those of the index, output 1.
pub(super) struct Max(pub(super) Rows);

impl<A: Sum> Pool<A> for Max {
    fn room(&self, split: &RowSplit) -> [usize; 2] {
        [0, split.to.len()]
    }

    #[inline(always)]
    fn row(
        &self,
        split: &RowSplit,
        access: Access<A>,
        io: &Io,
        row: Row,
        Buffers { from, to: best, index, .. }: &mut Buffers<A>,
    ) {
        best.fill(A::LOWEST);
        index.fill(-1);
        for (taps, seen_row) in split.seen_by(row) {
            // SAFETY: input 0 is the image.
            let seen = unsafe { split.from.read(access, io.input(0), seen_row, from) };
            for right in 0..split.windows.kernel[2] {
                let tap = (taps + right) as i32;
                split.windows.seen(right, split.to.lanes(), |at, first, step| {
                    let window = at.clone();
                    raise(&mut best[window], &mut index[at], &seen[first..], step, tap);
                });
            }
        }
        // SAFETY: output 1 is the index, and the row belongs to this part.
        unsafe { self.0.write_index(io, row, index) };
    }
}

/// Updates the maximum where an element is greater.
#[inline(always)]
fn raise<S: Sum>(best: &mut [S], index: &mut [i32], seen: &[S], step: usize, tap: i32) {
    let one = |best: &mut S, index: &mut i32, x: S| {
        // Only NaN differs from itself.
        #[allow(clippy::eq_op)]
        let is_greater = (x > *best) | ((x != x) & (*best == *best)) | (*index < 0);
        *best = if is_greater { x } else { *best };
        *index = if is_greater { tap } else { *index };
    };
    let places = best.iter_mut().zip(index);
    if step == 1 {
        places.zip(seen).for_each(|((best, index), x)| one(best, index, *x));
    } else {
        places.zip(seen.iter().step_by(step)).for_each(|((best, index), x)| one(best, index, *x));
    }
}

/// The gradient of [`Max`]; the rows are those of the index, input 1.
pub(super) struct MaxGrad(pub(super) Rows);

impl<A: Wide + Sum> Pool<A> for MaxGrad {
    fn room(&self, _: &RowSplit) -> [usize; 2] {
        [0, self.0.len()]
    }

    #[inline(always)]
    fn row(
        &self,
        split: &RowSplit,
        access: Access<A>,
        io: &Io,
        row: Row,
        Buffers { from: dy, to: dx, index, .. }: &mut Buffers<A>,
    ) {
        dx.fill(A::ZERO);
        for (taps, window) in split.seeing(row) {
            // SAFETY: inputs 0 and 1 are dy and the index.
            let dy = unsafe {
                self.0.read_index(io, window, index);
                split.from.read(access, io.input(0), window, dy)
            };
            for right in 0..split.windows.kernel[2] {
                let tap = (taps + right) as i32;
                split.windows.seen(right, split.to.lanes(), |at, first, step| {
                    let window = at.clone();
                    add_where(&mut dx[first..], step, &dy[window], &index[at], tap);
                });
            }
        }
    }
}

/// Adds dy to the positions of the maxima.
#[inline(always)]
fn add_where<A: Wide>(dx: &mut [A], step: usize, dy: &[A], index: &[i32], tap: i32) {
    let one = |dx: &mut A, dy: A, index: i32| {
        *dx = *dx + if index == tap { dy } else { A::ZERO };
    };
    let from = dy.iter().zip(index);
    if step == 1 {
        dx.iter_mut().zip(from).for_each(|(dx, (dy, index))| one(dx, *dy, *index));
    } else {
        dx.iter_mut().step_by(step).zip(from).for_each(|(dx, (dy, i))| one(dx, *dy, *i));
    }
}
