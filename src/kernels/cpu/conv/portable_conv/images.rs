//! Images in memory, read and written by position.
#![allow(unsafe_code)]

use std::ops::Range;

use super::sweep::Sweep;
use crate::kernels::cpu::matmul::tile::Factor;
use crate::kernels::cpu::volume;
use crate::ops::Meta;

/// The layout of images: N x C x D x H x W with any strides, the channels in groups.
#[derive(Clone, Copy, Debug)]
pub struct Images {
    strides: [isize; 5],
    /// Channels of a group.
    pub channels: usize,
}

impl Images {
    /// The images of a tensor.
    pub fn new(meta: &Meta, groups: usize) -> Images {
        Images { strides: volume::strides(meta), channels: meta.shape[1] / groups }
    }

    /// Stride of the channels.
    pub fn step(&self) -> isize {
        self.strides[1]
    }

    /// The offset of channel `channel` of a group at a position (image, layer, row, column).
    pub fn offset(&self, place: [usize; 4], group: usize, channel: usize) -> isize {
        let [n, c, d, h, w] = self.strides;
        let channel = (group * self.channels + channel) as isize * c;
        let [image, z, y, x] = place.map(|i| i as isize);
        channel + image * n + z * d + y * h + x * w
    }

    /// Copies all channels of a group at the positions `rows` of a sweep's result, one row each.
    ///
    /// # Safety
    /// `at` addresses the first element of such images, which can be read.
    pub unsafe fn gather<T: Factor>(
        &self,
        at: *const T,
        sweep: &Sweep,
        group: usize,
        rows: Range<usize>,
        to: &mut [T::Sum],
    ) {
        for (row, to) in sweep.rows(rows).zip(to.chunks_exact_mut(self.channels)) {
            let offset = self.offset(sweep.result(row), group, 0);
            // SAFETY: by the caller's promise.
            unsafe { T::gather(at.wrapping_offset(offset), self.step(), to) };
        }
    }

    /// Copies what the positions `rows` see of these images, one row each, with the entries
    /// `columns` of tap times channel; the padding is zero.
    ///
    /// # Safety
    /// `at` addresses the first element of such images, which can be read.
    pub unsafe fn gather_seen<T: Factor>(
        &self,
        at: *const T,
        sweep: &Sweep,
        group: usize,
        (rows, columns): (Range<usize>, &Range<usize>),
        to: &mut [T::Sum],
    ) {
        if columns.is_empty() {
            return;
        }
        for (row, to) in sweep.rows(rows).zip(to.chunks_exact_mut(columns.len())) {
            self.runs(columns, |tap, channel, run| {
                let to = &mut to[run];
                let Some(place) = sweep.source(row, &sweep.taps[tap]) else {
                    return to.fill(T::Sum::default());
                };
                let offset = self.offset(place, group, channel);
                // SAFETY: by the caller's promise.
                unsafe { T::gather(at.wrapping_offset(offset), self.step(), to) };
            });
        }
    }

    /// Calls `visit(tap, first channel, range in the row)` for each tap in `columns`.
    #[inline(always)]
    fn runs(&self, columns: &Range<usize>, mut visit: impl FnMut(usize, usize, Range<usize>)) {
        let (mut tap, mut channel) = (columns.start / self.channels, columns.start % self.channels);
        let mut done = 0;
        while done < columns.len() {
            let length = (self.channels - channel).min(columns.len() - done);
            visit(tap, channel, done..done + length);
            (tap, channel, done) = (tap + 1, 0, done + length);
        }
    }

    /// Writes all channels of a group at the positions `rows`.
    ///
    /// # Safety
    /// `at` addresses the first element of such images, and nothing else accesses these positions.
    pub unsafe fn scatter<T: Factor>(
        &self,
        at: *mut T,
        sweep: &Sweep,
        group: usize,
        rows: Range<usize>,
        from: &[T::Sum],
    ) {
        for (row, from) in sweep.rows(rows).zip(from.chunks_exact(self.channels)) {
            let offset = self.offset(sweep.result(row), group, 0);
            // SAFETY: by the caller's promise.
            unsafe { T::scatter(from, at.wrapping_offset(offset), self.step()) };
        }
    }
}
