//! The gradient of a convolution with respect to its weight.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;

use super::images::Images;
use super::sweep::Sweep;
use super::{BYTES, ROWS};
use crate::device::team;
use crate::kernels::cpu::matmul::tile::{Factor, Matrix, Sum};
use crate::kernels::cpu::space;
use crate::kernels::{Io, Kernel, Width, kernel};

/// Rows of the gradient (tap times channel of the image) that are summed together.
const PANEL: usize = 128;
/// The number of tasks that keeps many threads busy.
const MANY: usize = 32;
/// The number of positions that justifies a separate sum.
const WORTH: usize = 512;
/// How many channels are written together, since each channel's sums are strided.
const TOGETHER: usize = 16;

/// dw = sum over all positions of what they saw times the gradient there. Input 0 is dy, input 1
/// the image.
#[derive(Debug)]
pub struct WeightGradient {
    pub images: usize,
    pub groups: usize,
    pub sweep: Sweep,
    pub dy: Images,
    pub x: Images,
    /// Strides of dw.
    pub strides: [isize; 5],
}

/// How the work is divided; depends on the sizes alone.
#[derive(Clone, Copy, Debug)]
struct Cut {
    /// The number of pieces of the positions, each summed separately.
    splits: usize,
    /// The number of pieces of the rows of a group's gradient.
    panels: usize,
    /// The number of positions summed at once.
    block: usize,
}

/// The kernel: sums over each piece of the positions, then their total in fixed order.
pub fn prepare<T: Factor>(gradient: WeightGradient, width: Width) -> Arc<dyn Kernel> {
    let cut = gradient.cut::<T::Sum>();
    let tasks = cut.splits * gradient.groups * cut.panels;
    let parts = width.seats(tasks);
    let sums = [cut.splits * gradient.len()];
    let shared = space::bytes::<T::Sum>(sums);
    let own = space::bytes::<T::Sum>(gradient.own(cut.block));
    kernel(shared + parts * own, move |io| {
        team::ranges(tasks, 1, parts, &|range, seat| {
            for task in range {
                // SAFETY: each seat has its own scratch memory, and each task its own sums.
                unsafe {
                    let at = io.scratch::<u8>().add(shared + seat * own);
                    let own = space::arrays(at, gradient.own(cut.block));
                    gradient.sum::<T>(io, cut, task, own);
                }
            }
        })?;
        let channels = gradient.groups * gradient.dy.channels;
        let parts = parts.min(channels);
        team::ranges(channels, TOGETHER, parts, &|channels, _| {
            // SAFETY: the sums are complete, and each channel is in one range.
            unsafe { gradient.finish::<T>(io, cut.splits, channels) };
        })
    })
}

impl WeightGradient {
    /// The number of rows of a group's gradient.
    fn depth(&self) -> usize {
        self.sweep.taps.len() * self.x.channels
    }

    /// The number of elements of the gradient.
    fn len(&self) -> usize {
        self.groups * self.depth() * self.dy.channels
    }

    /// The number of positions over all images.
    fn places(&self) -> usize {
        self.images * self.sweep.places()
    }

    /// Elements of a part's scratch memory: what a block of positions saw, and dy there.
    fn own(&self, block: usize) -> [usize; 2] {
        [block * PANEL.min(self.depth()), block * self.dy.channels]
    }

    fn cut<S>(&self) -> Cut {
        let panels = self.depth().div_ceil(PANEL);
        let fit = BYTES / (self.len() * size_of::<S>()).max(1);
        let wanted = MANY / (self.groups * panels).max(1);
        let splits = wanted.min(self.places() / WORTH).min(fit).max(1);
        let row: usize = self.own(1).iter().sum();
        let block = (BYTES / (row * size_of::<S>()).max(1)).clamp(1, ROWS);
        Cut { splits, panels, block }
    }

    /// Sums one piece of the positions into one panel of one group.
    ///
    /// # Safety
    /// The tensors are those that this was made for; nothing else accesses these sums.
    unsafe fn sum<T: Factor>(
        &self,
        io: &Io,
        cut: Cut,
        task: usize,
        [seen, dy]: [&mut [T::Sum]; 2],
    ) {
        let (panel, rest) = (task % cut.panels, task / cut.panels);
        let (group, split) = (rest % self.groups, rest / self.groups);
        let columns = team::share(self.depth(), 1, cut.panels, panel);
        let (m, n) = (columns.len(), self.dy.channels);
        let start = split * self.len() + (group * self.depth() + columns.start) * n;
        // SAFETY: the scratch memory starts with `splits` gradients.
        let sums =
            unsafe { std::slice::from_raw_parts_mut(io.scratch::<T::Sum>().add(start), m * n) };
        sums.fill(T::Sum::default());
        for rows in blocks(team::share(self.places(), 1, cut.splits, split), cut.block) {
            let k = rows.len();
            let (seen, dy) = (&mut seen[..k * m], &mut dy[..k * n]);
            let seen_of = (rows.clone(), &columns);
            // SAFETY: by the caller's promise; the arrays have the lengths that the sizes imply.
            unsafe {
                self.x.gather_seen(io.input::<T>(1), &self.sweep, group, seen_of, seen);
                self.dy.gather(io.input::<T>(0), &self.sweep, group, rows, dy);
                let seen = Matrix { row: 1, column: m as isize, ..Matrix::of(seen, m) };
                let c = Matrix::of_mut(sums, n);
                T::Sum::multiply([m, n, k], c, true, seen, Matrix::of(dy, n));
            }
        }
    }

    /// Writes the gradient of some channels of the output.
    ///
    /// # Safety
    /// The sums are complete; nothing else accesses these channels of the gradient.
    unsafe fn finish<T: Factor>(&self, io: &Io, splits: usize, channels: Range<usize>) {
        let n = self.dy.channels;
        let mut start = channels.start;
        while start < channels.end {
            let (group, channel) = (start / n, start % n);
            let length = TOGETHER.min(n - channel).min(channels.end - start);
            let places = self.entries().enumerate();
            for (row, offset) in places {
                let at = (group * self.depth() + row) * n + channel;
                let to = offset + start as isize * self.strides[0];
                // SAFETY: by the caller's promise.
                unsafe {
                    let sums = self.total::<T>(io, splits, at, length);
                    let to = io.output::<T>(0).wrapping_offset(to);
                    T::scatter(&sums[..length], to, self.strides[0]);
                }
            }
            start += length;
        }
    }

    /// The offset of each row of a group's gradient in dw.
    fn entries(&self) -> impl Iterator<Item = isize> + '_ {
        let [_, channel, window @ ..] = self.strides;
        self.sweep.taps.iter().flat_map(move |tap| {
            let start = tap.offset_in(window);
            (0..self.x.channels as isize).map(move |c| c * channel + start)
        })
    }

    /// The sum over all pieces of `length` elements from `at` on, in order.
    ///
    /// # Safety
    /// The sums are complete and `length` is at most [`TOGETHER`].
    unsafe fn total<T: Factor>(
        &self,
        io: &Io,
        splits: usize,
        at: usize,
        length: usize,
    ) -> [T::Sum; TOGETHER] {
        let mut total = [T::Sum::default(); TOGETHER];
        for split in 0..splits {
            let start = split * self.len() + at;
            // SAFETY: the scratch memory starts with `splits` gradients.
            let sums =
                unsafe { std::slice::from_raw_parts(io.scratch::<T::Sum>().add(start), length) };
            T::Sum::add_row(&mut total[..length], sums);
        }
        total
    }
}

/// A range in pieces of `block`.
fn blocks(range: Range<usize>, block: usize) -> impl Iterator<Item = Range<usize>> {
    range.clone().step_by(block).map(move |start| start..(start + block).min(range.end))
}
