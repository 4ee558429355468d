//! The pieces of a convolution, one by one.

use std::ops::Range;

use super::cut::{Convolution, Cut, bytes};
use crate::device::onednn::{Descriptor, Window};
use crate::device::team::share;
use crate::error::Result;
use crate::kernels::Width;
use crate::kernels::cpu::onednn::pieces::{Collected, Columns, Part, Parts, Pieces};
use crate::ops::Meta;

/// Pieces of a convolution while they are collected.
pub(super) struct Builder<'a> {
    of: &'a Convolution,
    /// The weights' layout.
    w: &'a Descriptor,
    pieces: Collected<(Meta, Meta, Window)>,
}

impl<'a> Builder<'a> {
    /// No pieces yet.
    pub fn new(of: &'a Convolution, w: &'a Descriptor, width: Width) -> Self {
        Builder { of, w, pieces: Collected::new(width.0) }
    }

    /// All pieces; `None` if oneDNN has no fast implementation for one with weights in this layout.
    pub fn pieces(self, cut: Cut) -> Result<Option<Pieces>> {
        match cut {
            Cut::Images(images) => self.images(images, 0),
            Cut::Rows(bands) => self.rows(bands),
            Cut::Channels(count, unit) => self.channels(count, unit),
            Cut::Sums(images) => {
                let count = self.of.y.shape[0].div_ceil(images);
                let bytes = self.w.bytes(self.of.library);
                Ok(self.images(images, bytes)?.map(|pieces| pieces.with_sums(count, bytes)))
            }
        }
    }

    /// Adds a piece; false if oneDNN has no fast implementation for it.
    fn add(&mut self, piece: &Convolution, w: &Descriptor, parts: Parts) -> Result<bool> {
        let size = (piece.x.clone(), piece.y.clone(), piece.window.clone());
        self.pieces.add(size, || piece.choice(Some(w.copy(self.of.library)?)), parts)
    }

    /// Pieces of this many images; each piece's weights are this many bytes apart.
    fn images(mut self, images: usize, w_bytes: usize) -> Result<Option<Pieces>> {
        let count = self.of.y.shape[0];
        for (n, first) in (0..count).step_by(images).enumerate() {
            let piece = self.of.of_images(images.min(count - first));
            let at = |meta: &Meta| Part::at(first * bytes(meta, 0));
            let parts = self.of.parts(
                at(&self.of.x),
                Part::at(n * w_bytes),
                Part::default(),
                at(&self.of.y),
            );
            if !self.add(&piece, self.w, parts)? {
                return Ok(None);
            }
        }
        Ok(Some(self.pieces.done()))
    }

    /// So many pieces of each image of y.
    fn rows(mut self, bands: usize) -> Result<Option<Pieces>> {
        let of = self.of;
        for image in 0..of.y.shape[0] {
            for n in 0..bands {
                let rows = share(of.y.shape[2], 1, bands, n);
                let first = rows.start;
                let Some((piece, start)) = of.band(rows) else { return Ok(None) };
                let at = |meta, row| Part::at(image * bytes(meta, 0) + row * bytes(meta, 2));
                let (x, y) = (at(&of.x, start), at(&of.y, first));
                let parts = of.parts(x, Part::default(), Part::default(), y);
                if !self.add(&piece, self.w, parts)? {
                    return Ok(None);
                }
            }
        }
        Ok(Some(self.pieces.done()))
    }

    /// So many pieces of the channels, in blocks of `unit`. The last one computes as many as fill its
    /// blocks, of which those that there are not are left.
    fn channels(mut self, pieces: usize, unit: usize) -> Result<Option<Pieces>> {
        let (of, d) = (self.of, self.of.channel());
        let (all, element) = (of.w[d] as usize, of.x.dtype.size());
        let Some(apart) = self.w.apart(of.library, &of.w, d, unit as i64) else { return Ok(None) };
        for n in 0..pieces {
            let Range { start, end } = share(all, unit, pieces, n);
            let count = end - start;
            let wide = count.next_multiple_of(unit);
            let Some(w) = self.w.first(of.library, &of.w, d, wide as i64) else { return Ok(None) };
            let piece = of.of_channels(wide);
            let whole = if d == 0 { &of.y } else { &of.x };
            let images = columns(whole, count * element, wide * element);
            let images = Part { start: start * element, columns: Some(images) };
            let (x, y) = if d == 0 { (Part::default(), images) } else { (images, Part::default()) };
            let bias =
                Part { start: start * element, columns: longer(count * element, wide * element) };
            let parts = of.parts(x, Part::at(start / unit * apart * element), bias, y);
            if !self.add(&piece, &w, parts)? {
                return Ok(None);
            }
        }
        Ok(Some(self.pieces.done()))
    }
}

/// The places of images as rows, of which pieces have so many bytes, and wider ones in their copies.
fn columns(images: &Meta, bytes: usize, width: usize) -> Columns {
    let rows = images.numel() / images.shape[1];
    Columns { rows, bytes, pitch: images.shape[1] * images.dtype.size(), width }
}

/// A copy of so many bytes in memory for more; `None` if there are none more.
fn longer(bytes: usize, width: usize) -> Option<Columns> {
    (bytes < width).then_some(Columns { rows: 1, bytes, pitch: bytes, width })
}
