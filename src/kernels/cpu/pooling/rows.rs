//! Images processed row by row, and the parts of a row that windows read.
#![allow(unsafe_code)]

use std::ops::Range;

use crate::dtype::DType;
use crate::error::Result;
use crate::kernels::Io;
use crate::kernels::cpu::matmul::tile::Sum;
use crate::kernels::cpu::strided::access::{Access, Run};
use crate::kernels::cpu::volume::{self, volume};
use crate::ops::Meta;
use crate::ops::geometry::Axes;
use crate::ops::pooling::Window;

/// From this many channels on it pays to gather them from their planes.
const MANY: usize = 8;

/// How windows slide over images.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Windows {
    /// Extents of a window.
    pub kernel: [usize; 3],
    /// Steps of the window.
    pub stride: [usize; 3],
    /// Distance between the window's taps.
    pub dilation: [usize; 3],
    /// Padding before each axis, and after it.
    pub before: [usize; 3],
    pub after: [usize; 3],
    /// Extents of the image.
    pub image: [usize; 3],
    /// The number of windows in each direction.
    pub output: [usize; 3],
}

impl Windows {
    /// The windows of an operation over images of this size.
    ///
    /// # Errors
    /// Those of [`Window::over`].
    pub fn new(window: &Window, op: &'static str, image: &[usize]) -> Result<Windows> {
        let output = window.over(op, image)?;
        let dilation: Axes = (0..window.rank()).map(|d| window.dilation(d)).collect();
        let (before, after) = window.padding.split_at(window.rank());
        Ok(Windows {
            kernel: volume(&window.kernel, 1),
            stride: volume(&window.stride, 1),
            dilation: volume(&dilation, 1),
            before: volume(before, 0),
            after: volume(after, 0),
            image: volume(image, 1),
            output: volume(&output, 1),
        })
    }

    /// Where window `window` of direction `d` starts in the padded image, and tap `tap` in it.
    fn place(&self, d: usize, window: usize, tap: usize) -> usize {
        window * self.stride[d] + tap * self.dilation[d]
    }

    /// The number of entries of window `window` of direction `d` that are in the padded image.
    pub fn padded(&self, d: usize, window: usize) -> usize {
        let end = self.image[d] + self.before[d] + self.after[d];
        (end - self.place(d, window, 0)).div_ceil(self.dilation[d]).min(self.kernel[d])
    }

    /// The position in the image that tap `tap` of window `window` reads.
    pub fn position(&self, d: usize, window: usize, tap: usize) -> usize {
        self.place(d, window, tap) - self.before[d]
    }

    /// The windows of direction `d` whose tap `tap` is within the image.
    pub fn inside(&self, d: usize, tap: usize) -> Range<usize> {
        let (stride, before) = (self.stride[d], self.before[d]);
        let tap = tap * self.dilation[d];
        let first = before.saturating_sub(tap).div_ceil(stride);
        let end = (self.image[d] + before).saturating_sub(tap).div_ceil(stride);
        first..end.min(self.output[d]).max(first)
    }

    /// The taps of window `window` of direction `d` that are within the image.
    pub fn taps(&self, d: usize, window: usize) -> Range<usize> {
        let (start, dilation) = (self.place(d, window, 0), self.dilation[d]);
        let end = (self.image[d] + self.before[d]).saturating_sub(start).div_ceil(dilation);
        let end = end.min(self.kernel[d]);
        self.before[d].saturating_sub(start).div_ceil(dilation).min(end)..end
    }

    /// The windows of direction `d` that read position `at` of the image, in order, with the tap
    /// through which they do.
    pub fn reading(&self, d: usize, at: usize) -> impl Iterator<Item = (usize, usize)> {
        let (stride, dilation) = (self.stride[d], self.dilation[d]);
        let (at, reach) = (at + self.before[d], (self.kernel[d] - 1) * dilation + 1);
        let first = (at + 1).saturating_sub(reach).div_ceil(stride);
        let windows = first..(at / stride + 1).min(self.output[d]).max(first);
        let tap = move |window: usize| (window, (at - window * stride) / dilation);
        let reads = move |window: &usize| (at - window * stride).is_multiple_of(dilation);
        windows.filter(reads).map(tap)
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
        let (stride, inside) = (self.stride[2], self.inside(2, tap));
        let first = |window: usize| self.position(2, window, tap);
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

/// A row of an image with the lanes of a row: the image, and the layer and the line.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub image: usize,
    pub at: [usize; 2],
}

impl Row {
    /// Another row of the same image.
    pub fn moved(self, at: [usize; 2]) -> Row {
        Row { at, ..self }
    }
}

/// The rows of images, of one channel or of all channels if they are innermost: a matrix of
/// columns times lanes.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    dtype: DType,
    strides: [isize; 5],
    channels: usize,
    columns: usize,
    lanes: usize,
}

impl Rows {
    /// Whether rows of this tensor are best processed with all their channels.
    pub fn prefer_channels(meta: &Meta) -> bool {
        let [channel, column] = [1, meta.shape.rank() - 1].map(|d| meta.strides[d].unsigned_abs());
        meta.shape[1] >= MANY || (meta.shape[1] > 1 && channel < column)
    }

    /// The rows of a tensor, each with all channels or with one.
    pub fn new(meta: &Meta, all_channels: bool) -> Rows {
        let channels = meta.shape[1];
        Rows {
            dtype: meta.dtype,
            strides: volume::strides(meta),
            channels,
            columns: meta.shape[meta.shape.rank() - 1],
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

    /// The number of images of such lanes among `images` images of all channels.
    pub fn planes(&self, images: usize) -> usize {
        images * self.channels / self.lanes.max(1)
    }

    fn offset(&self, row: Row) -> isize {
        let [n, c, d, h, _] = self.strides;
        let each = (self.channels / self.lanes.max(1)).max(1);
        let [image, channel] = [row.image / each, row.image % each].map(|i| i as isize);
        let [z, y] = row.at.map(|i| i as isize);
        image * n + channel * c + z * d + y * h
    }

    /// The number of runs of a row, the step between them, the length of a run and the step within
    /// it.
    fn runs(&self) -> (usize, isize, usize, isize) {
        let [_, c, _, _, w] = self.strides;
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
        row: Row,
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
    pub unsafe fn copy<A: Sum>(&self, access: Access<A>, at: *const u8, row: Row, to: &mut [A]) {
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
    pub unsafe fn write<A: Sum>(&self, access: Access<A>, at: *mut u8, row: Row, from: &[A]) {
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
    pub unsafe fn write_index(&self, io: &Io, row: Row, from: &[i32]) {
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
    pub unsafe fn read_index(&self, io: &Io, row: Row, to: &mut [i32]) {
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
    fn places(&self, row: Row, mut visit: impl FnMut(usize, isize)) {
        let start = self.offset(row);
        let (runs, between, length, step) = self.runs();
        for i in 0..runs {
            let start = start + i as isize * between;
            (0..length).for_each(|j| visit(i * length + j, start + j as isize * step));
        }
    }
}
