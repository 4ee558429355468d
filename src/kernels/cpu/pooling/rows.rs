//! Images processed row by row, and the parts of a row that windows read.
#![allow(unsafe_code)]

use std::ops::Range;

use crate::dtype::DType;
use crate::error::Result;
use crate::kernels::Io;
use crate::kernels::cpu::matmul::tile::Sum;
use crate::kernels::cpu::strided::access::{Access, Run};
use crate::ops::Meta;
use crate::ops::pooling::Window;

/// How windows slide over images.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Windows {
    /// Height and width of a window.
    pub kernel: [usize; 2],
    /// Steps of the window.
    pub stride: [usize; 2],
    /// Padding above and to the left.
    pub padding: [usize; 2],
    /// Height and width of the image.
    pub image: [usize; 2],
    /// The number of windows in each direction.
    pub output: [usize; 2],
}

impl Windows {
    /// The windows of an operation over images of this size.
    ///
    /// # Errors
    /// Those of [`Window::over`].
    pub fn new(window: &Window, op: &'static str, image: [usize; 2]) -> Result<Windows> {
        let (Window { kernel, stride, padding }, output) = (window, window.over(op, image)?);
        let padding = [padding[0], padding[1]];
        Ok(Windows { kernel: *kernel, stride: *stride, padding, image, output })
    }

    /// The windows of direction `d` whose tap `tap` is within the image.
    pub fn inside(&self, d: usize, tap: usize) -> Range<usize> {
        let (stride, padding) = (self.stride[d], self.padding[d]);
        let first = padding.saturating_sub(tap).div_ceil(stride);
        let end = (self.image[d] + padding).saturating_sub(tap).div_ceil(stride);
        first..end.min(self.output[d]).max(first)
    }

    /// The taps of window `window` of direction `d` that are within the image.
    pub fn taps(&self, d: usize, window: usize) -> Range<usize> {
        let start = window * self.stride[d];
        let end = (self.image[d] + self.padding[d]).saturating_sub(start).min(self.kernel[d]);
        self.padding[d].saturating_sub(start).min(end)..end
    }

    /// The windows of direction `d` that cover position `at` of the image.
    pub fn covering(&self, d: usize, at: usize) -> Range<usize> {
        let at = at + self.padding[d];
        let first = (at + 1).saturating_sub(self.kernel[d]).div_ceil(self.stride[d]);
        first..(at / self.stride[d] + 1).min(self.output[d]).max(first)
    }

    /// Calls `visit(windows, first, step)` for what a row of windows, with `lanes` channels, reads
    /// from a row of the image through column `tap`: the elements `windows` of the former read the
    /// elements of the latter from `first` on, `step` apart.
    #[inline(always)]
    pub fn seen(
        &self,
        tap: usize,
        lanes: usize,
        mut visit: impl FnMut(Range<usize>, usize, usize),
    ) {
        let (stride, inside) = (self.stride[1], self.inside(1, tap));
        let first = |window: usize| window * stride + tap - self.padding[1];
        if inside.is_empty() {
            return;
        }
        if lanes == 1 {
            visit(inside.clone(), first(inside.start), stride);
        } else if stride == 1 {
            visit(inside.start * lanes..inside.end * lanes, first(inside.start) * lanes, 1);
        } else {
            inside.for_each(|w| visit(w * lanes..(w + 1) * lanes, first(w) * lanes, 1));
        }
    }
}

/// One row of an image, of one channel or of all channels if they are innermost: a matrix of
/// columns times lanes.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    dtype: DType,
    strides: [isize; 4],
    channels: usize,
    columns: usize,
    lanes: usize,
}

impl Rows {
    /// Whether rows of this tensor are best processed with all their channels.
    pub fn prefer_channels(meta: &Meta) -> bool {
        let [channel, column] = [1, 3].map(|d| meta.strides[d].unsigned_abs());
        meta.shape[1] > 1 && channel < column
    }

    /// The rows of a tensor, each with all channels or with one.
    pub fn new(meta: &Meta, all_channels: bool) -> Rows {
        let channels = meta.shape[1];
        Rows {
            dtype: meta.dtype,
            strides: [0, 1, 2, 3].map(|d| meta.strides[d]),
            channels,
            columns: meta.shape[3],
            lanes: if all_channels { channels } else { 1 },
        }
    }

    /// The number of elements of a row.
    pub fn len(&self) -> usize {
        self.columns * self.lanes
    }

    /// The number of channels of a row.
    pub fn lanes(&self) -> usize {
        self.lanes
    }

    /// The number of planes of `images` images.
    pub fn planes(&self, images: usize) -> usize {
        images * self.channels / self.lanes.max(1)
    }

    fn offset(&self, (plane, row): (usize, usize)) -> isize {
        let [n, c, h, _] = self.strides;
        let each = (self.channels / self.lanes.max(1)).max(1);
        (plane / each) as isize * n + (plane % each) as isize * c + row as isize * h
    }

    /// The number of runs of a row, the step between them, the length of a run and the step within
    /// it.
    fn runs(&self) -> (usize, isize, usize, isize) {
        let [_, c, _, w] = self.strides;
        if self.lanes == 1 {
            (1, 0, self.columns, w)
        } else if w == c * self.lanes as isize {
            (1, 0, self.len(), c)
        } else {
            (self.columns, w, self.lanes, c)
        }
    }

    /// A row: in place if it can be read there, otherwise copied into `buffer`.
    ///
    /// # Safety
    /// `at` addresses the first element of such a tensor, which can be read.
    #[inline(always)]
    pub unsafe fn read<'a, A: Sum>(
        &self,
        access: Access<A>,
        at: *const u8,
        row: (usize, usize),
        buffer: &'a mut [A],
    ) -> &'a [A] {
        let (start, (runs, _, length, step)) = (self.offset(row), self.runs());
        // SAFETY: by the caller's promise.
        unsafe {
            if runs == 1 {
                return access.read(at, Run { start, step, length }, buffer);
            }
            self.copy(access, at, row, buffer);
        }
        &buffer[..self.len()]
    }

    /// Copies a row into `to`.
    ///
    /// # Safety
    /// As for [`Rows::read`].
    #[inline(always)]
    pub unsafe fn copy<A: Sum>(
        &self,
        access: Access<A>,
        at: *const u8,
        row: (usize, usize),
        to: &mut [A],
    ) {
        let (start, (_, between, length, step)) = (self.offset(row), self.runs());
        for (i, to) in to[..self.len()].chunks_exact_mut(length.max(1)).enumerate() {
            let run = Run { start: start + i as isize * between, step, length };
            // SAFETY: by the caller's promise.
            unsafe { access.copy(at, run, to) };
        }
    }

    /// Writes a row.
    ///
    /// # Safety
    /// `at` addresses the first element of such a tensor, and nothing else accesses the row.
    #[inline(always)]
    pub unsafe fn write<A: Sum>(
        &self,
        access: Access<A>,
        at: *mut u8,
        row: (usize, usize),
        from: &[A],
    ) {
        let (start, (_, between, length, step)) = (self.offset(row), self.runs());
        for (i, from) in from[..self.len()].chunks_exact(length.max(1)).enumerate() {
            let run = Run { start: start + i as isize * between, step, length };
            // SAFETY: by the caller's promise.
            unsafe { access.store(from, at, run) };
        }
    }

    /// Writes a row of integers, of type uint8 or int32.
    ///
    /// # Safety
    /// As for [`Rows::write`].
    #[inline(always)]
    pub unsafe fn write_index(&self, io: &Io, row: (usize, usize), from: &[i32]) {
        if self.dtype == DType::UInt8 {
            let at = io.output::<u8>(1);
            // SAFETY: by the caller's promise.
            self.places(row, |i, place| unsafe { *at.wrapping_offset(place) = from[i] as u8 });
        } else {
            let at = io.output::<i32>(1);
            // SAFETY: by the caller's promise.
            self.places(row, |i, place| unsafe { *at.wrapping_offset(place) = from[i] });
        }
    }

    /// Copies a row of integers, of type uint8 or int32, into `to`.
    ///
    /// # Safety
    /// As for [`Rows::read`].
    #[inline(always)]
    pub unsafe fn read_index(&self, io: &Io, row: (usize, usize), to: &mut [i32]) {
        if self.dtype == DType::UInt8 {
            let at = io.input::<u8>(1);
            // SAFETY: by the caller's promise.
            self.places(row, |i, place| to[i] = unsafe { *at.wrapping_offset(place) } as i32);
        } else {
            let at = io.input::<i32>(1);
            // SAFETY: by the caller's promise.
            self.places(row, |i, place| to[i] = unsafe { *at.wrapping_offset(place) });
        }
    }

    /// Calls `visit(i, offset)` for each element of a row.
    #[inline(always)]
    fn places(&self, row: (usize, usize), mut visit: impl FnMut(usize, isize)) {
        let start = self.offset(row);
        let (runs, between, length, step) = self.runs();
        for i in 0..runs {
            let start = start + i as isize * between;
            (0..length).for_each(|j| visit(i * length + j, start + j as isize * step));
        }
    }
}
