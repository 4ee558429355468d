//! Applying a weight to what each position sees: a convolution, and its gradient with respect to
//! the image.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;

use super::images::Images;
use super::sweep::Sweep;
use super::{BYTES, ROWS};
use crate::device::team;
use crate::error::Result;
use crate::kernels::cpu::matmul::tile::{Factor, Matrix, Sum, gather_matrix};
use crate::kernels::cpu::space;
use crate::kernels::{Io, Kernel, Width, kernel};

/// Strides of the weight: along groups, along channels of the source and of the result, and along
/// the window's axes.
#[derive(Clone, Copy, Debug)]
pub struct Weight {
    pub group: isize,
    pub source: isize,
    pub result: isize,
    pub window: [isize; 3],
}

/// Result = weight applied to source, at every position of the sweeps. Input 0 is the source, input
/// 1 the weight, input 2 the bias if there is one.
#[derive(Debug)]
pub struct Apply {
    pub images: usize,
    pub groups: usize,
    pub sweeps: Vec<Sweep>,
    pub source: Images,
    pub result: Images,
    pub weight: Weight,
    /// Stride of the bias.
    pub bias: Option<isize>,
}

/// A unit of work: some positions of one sweep, for one group.
struct Task {
    sweep: usize,
    group: usize,
    rows: Range<usize>,
}

/// The kernel, with blocks whose size does not depend on the width.
pub fn prepare<T: Factor>(apply: Apply, width: Width) -> Arc<dyn Kernel> {
    let block = apply.block::<T::Sum>();
    let tasks = apply.tasks(block);
    let parts = width.seats(tasks);
    let shared = space::bytes::<T::Sum>(apply.shared());
    let own = space::bytes::<T::Sum>(apply.own(block));
    kernel(shared + parts * own, move |io| {
        apply.gather_weight::<T>(parts, io)?;
        // SAFETY: the scratch memory has the requested size.
        let [weight, bias] = unsafe { space::arrays(io.scratch(), apply.shared()) };
        apply.gather_bias::<T>(io, bias);
        let (weight, bias) = (&*weight, &*bias);
        team::ranges(tasks, 1, parts, &|range, seat| {
            for task in range {
                // SAFETY: each seat has its own scratch memory, and each position is in one task.
                unsafe {
                    let at = io.scratch::<u8>().add(shared + seat * own);
                    let own = space::arrays(at, apply.own(block));
                    apply.run::<T>(io, apply.task(task, block), weight, bias, own);
                }
            }
        })
    })
}

impl Apply {
    /// The number of source entries of one group that a position of this sweep sees.
    fn depth(&self, sweep: &Sweep) -> usize {
        sweep.taps.len() * self.source.channels
    }

    /// Numbers of elements that all parts share: the weight and the bias.
    fn shared(&self) -> [usize; 2] {
        let depth: usize = self.sweeps.iter().map(|s| self.depth(s)).sum();
        [self.groups * depth * self.result.channels, self.groups * self.result.channels]
    }

    /// Numbers of elements of each part: what a block of positions sees, and the result there.
    fn own(&self, block: usize) -> [usize; 2] {
        let deepest = self.sweeps.iter().map(|s| self.depth(s)).max().unwrap_or(0);
        [block * deepest, block * self.result.channels]
    }

    /// The number of positions computed at once.
    fn block<S>(&self) -> usize {
        let row: usize = self.own(1).iter().sum();
        (BYTES / (row * size_of::<S>()).max(1)).clamp(1, ROWS)
    }

    fn blocks(&self, sweep: &Sweep, block: usize) -> usize {
        (self.images * sweep.places()).div_ceil(block)
    }

    fn tasks(&self, block: usize) -> usize {
        self.sweeps.iter().map(|s| self.blocks(s, block) * self.groups).sum()
    }

    fn task(&self, mut index: usize, block: usize) -> Task {
        let mut sweep = 0;
        while index >= self.blocks(&self.sweeps[sweep], block) * self.groups {
            index -= self.blocks(&self.sweeps[sweep], block) * self.groups;
            sweep += 1;
        }
        let start = index / self.groups * block;
        let end = (start + block).min(self.images * self.sweeps[sweep].places());
        Task { sweep, group: index % self.groups, rows: start..end }
    }

    /// The offset of the weight of a sweep and group within all weights.
    fn weight_start(&self, sweep: usize, group: usize) -> usize {
        let before: usize = self.sweeps[..sweep].iter().map(|s| self.depth(s)).sum();
        let own = self.depth(&self.sweeps[sweep]);
        (before * self.groups + own * group) * self.result.channels
    }

    /// Copies the weight of every sweep and group to the start of the scratch memory: (tap, source
    /// channel) x result channel.
    fn gather_weight<T: Factor>(&self, parts: usize, io: &Io) -> Result<()> {
        let tap = self.source.channels * self.result.channels;
        let pieces = self.shared()[0].checked_div(tap).unwrap_or(0);
        team::ranges(pieces, 1, parts, &|range, _| {
            for piece in range {
                // SAFETY: the pieces do not overlap; input 1 has the strides of the weight.
                unsafe {
                    let to = io.scratch::<T::Sum>().add(piece * tap);
                    let to = std::slice::from_raw_parts_mut(to, tap);
                    let from = self.weight_of(piece, io.input::<T>(1));
                    gather_matrix(from, self.result.channels, to);
                }
            }
        })
    }

    /// The weight of one tap and group; `piece` counts sweep by sweep, group by group.
    fn weight_of<T>(&self, mut piece: usize, at: *const T) -> Matrix<*const T> {
        let mut sweep = 0;
        while piece >= self.sweeps[sweep].taps.len() * self.groups {
            piece -= self.sweeps[sweep].taps.len() * self.groups;
            sweep += 1;
        }
        let taps = &self.sweeps[sweep].taps;
        let (tap, group) = (&taps[piece % taps.len()], piece / taps.len());
        let w = &self.weight;
        let offset = group as isize * w.group + tap.offset_in(w.window);
        Matrix { at: at.wrapping_offset(offset), row: w.source, column: w.result }
    }

    fn gather_bias<T: Factor>(&self, io: &Io, bias: &mut [T::Sum]) {
        if let Some(step) = self.bias {
            // SAFETY: input 2 has an element for each channel of the result.
            unsafe { T::gather(io.input::<T>(2), step, bias) };
        }
    }

    /// Computes the result at some positions.
    ///
    /// # Safety
    /// The tensors are those that this was made for; nothing else accesses these positions.
    unsafe fn run<T: Factor>(
        &self,
        io: &Io,
        task: Task,
        weight: &[T::Sum],
        bias: &[T::Sum],
        [seen, sums]: [&mut [T::Sum]; 2],
    ) {
        let (sweep, group, channels) = (&self.sweeps[task.sweep], task.group, self.result.channels);
        let (m, k) = (task.rows.len(), self.depth(sweep));
        let (seen, sums) = (&mut seen[..m * k], &mut sums[..m * channels]);
        let weight = &weight[self.weight_start(task.sweep, group)..][..k * channels];
        let seen_of = (task.rows.clone(), &(0..k));
        // SAFETY: by the caller's promise; the arrays have the lengths that the sizes imply.
        unsafe {
            self.source.gather_seen(io.input::<T>(0), sweep, group, seen_of, seen);
            let (a, b) = (Matrix::of(seen, k), Matrix::of(weight, channels));
            T::Sum::multiply([m, channels, k], Matrix::of_mut(sums, channels), false, a, b);
        }
        if self.bias.is_some() {
            T::Sum::add_row(sums, &bias[group * channels..][..channels]);
        }
        // SAFETY: as above.
        unsafe { self.result.scatter(io.output::<T>(0), sweep, group, task.rows, sums) };
    }
}
