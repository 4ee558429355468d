//! A convolution as a oneDNN primitive, and how it is cut into pieces: some of the images, some
//! rows of an image, or some of the channels. Gradients of small weights are sums over pieces of
//! the images.

use smallvec::SmallVec;

use crate::device::onednn::{self, Choice, Descriptor, Library, Propagation, Tensors, Window};
use crate::dtype::DType;
use crate::error::Result;
use crate::kernels::Width;
use crate::kernels::cpu::onednn::layout::{describe, is_same};
use crate::kernels::cpu::onednn::pieces::{self, Collected, Columns, Part, Parts, Pieces};
use crate::ops::Meta;
use crate::ops::conv::channels_innermost;

/// The usual number of pieces.
const MOST: usize = 16;
/// At least this many images make pieces of images; fewer are cut further.
const MANY_IMAGES: usize = 8;
/// The fewest rows of a piece.
const FEWEST_ROWS: usize = 4;
/// The channels of a piece are a multiple of this, which is a vector of packed weights.
const CHANNELS: usize = 16;
/// The most bytes that partial sums of a gradient take.
const SUMS_BYTES: usize = 4 << 20;

/// A convolution whose tensors have the layouts that are passed to oneDNN.
#[derive(Clone)]
pub(super) struct Convolution {
    pub library: &'static Library,
    pub pass: Propagation,
    pub window: Window,
    pub x: Meta,
    pub y: Meta,
    pub bias: Option<Meta>,
    /// Extents of the weights, with groups as a leading dimension of its own if there are several.
    pub w: SmallVec<[i64; 6]>,
}

/// How a convolution is cut, which depends on the metas alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Cut {
    Whole,
    /// This many images a piece.
    Images(usize),
    /// This many rows of one image a piece.
    Rows(usize),
    /// Into this many pieces of the channels that the weights have first in memory.
    Channels(usize),
    /// As with images; the results are to be added.
    Sums(usize),
}

impl Convolution {
    /// oneDNN's choice, for weights in this layout or any.
    pub fn choice(&self, w: Option<Descriptor>) -> Result<Option<Choice<'static>>> {
        let [x, y] = [&self.x, &self.y].map(|meta| describe(self.library, meta));
        let (Some(x), Some(y)) = (x?, y?) else { return Ok(None) };
        let any = || Descriptor::any(self.library, self.x.dtype, &self.w);
        let w = w.map_or_else(any, Ok)?;
        let bias = self.bias.as_ref().map(|meta| describe(self.library, meta));
        let tensors = Tensors { x, w, bias: bias.transpose()?.flatten(), y };
        onednn::convolution(self.library, self.pass, &self.window, tensors)
    }

    /// The convolution in pieces for the team, or as a whole for the calling thread.
    pub fn pieces(&self, whole: Choice, width: Option<Width>) -> Result<Pieces> {
        let cut = match width {
            Some(width) => self.cut_for(width, &whole.weights)?,
            None => None,
        };
        if cut.is_none() && width.is_some() {
            log::debug!("{:?} of {:?} runs on one thread", self.pass, self.x);
        }
        cut.map_or_else(|| whole.build().map(Pieces::whole), Ok)
    }

    fn cut_for(&self, width: Width, w: &Descriptor) -> Result<Option<Pieces>> {
        let builder = Builder { of: self, w, pieces: Collected::new(width.0) };
        match self.cut() {
            Cut::Whole => Ok(None),
            Cut::Images(images) => builder.images(images, 0),
            Cut::Sums(images) => {
                let (count, bytes) = (self.images().div_ceil(images), w.bytes(self.library));
                Ok(builder.images(images, bytes)?.map(|pieces| pieces.with_sums(count, bytes)))
            }
            Cut::Rows(rows) => builder.rows(rows),
            Cut::Channels(parts) => builder.channels(parts),
        }
    }

    fn cut(&self) -> Cut {
        let (images, wanted) = (self.images(), pieces::count(self.flops(), MOST));
        let weight = self.w.iter().product::<i64>() as usize * self.x.dtype.size();
        let of_images = |pieces: usize| images.div_ceil(pieces.clamp(1, images));
        let is_usual = self.is_channels_last();
        if wanted == 1 || !is_usual && !self.has_images_outermost() {
            return Cut::Whole;
        }
        let by_channels = if is_usual { self.most_channel_pieces(wanted) } else { 1 };
        if self.pass == Propagation::GradWeight {
            let fits = (SUMS_BYTES / weight.max(1)).min(wanted).min(images).max(1);
            let fits = if self.x.dtype == DType::Float32 { fits } else { 1 };
            return match fits >= by_channels {
                true if fits > 1 => Cut::Sums(of_images(fits)),
                true => Cut::Whole,
                false => Cut::Channels(by_channels),
            };
        }
        if images >= wanted.min(MANY_IMAGES) || !is_usual {
            return if images > 1 { Cut::Images(of_images(wanted)) } else { Cut::Whole };
        }
        let bands = wanted.div_ceil(images).min(self.y.shape[2] / FEWEST_ROWS);
        let image = self.x.bytes() / images;
        if self.pass == Propagation::Forward && bands > 1 && (image >= weight || by_channels == 1) {
            return Cut::Rows(self.y.shape[2].div_ceil(bands));
        }
        match by_channels {
            1 if images > 1 => Cut::Images(1),
            1 => Cut::Whole,
            parts => Cut::Channels(parts),
        }
    }

    fn images(&self) -> usize {
        self.y.shape[0]
    }

    /// Multiplications and additions.
    fn flops(&self) -> u64 {
        let (is_grouped, rank) = (self.is_grouped(), self.y.shape.rank());
        let taps: i64 = self.w[self.w.len() + 1 - rank..].iter().product();
        debug_assert_eq!(self.w.len(), rank + is_grouped as usize);
        2 * self.y.numel() as u64 * taps as u64
    }

    fn is_grouped(&self) -> bool {
        self.w.len() > self.y.shape.rank()
    }

    /// Whether both images are dense with their channels innermost.
    fn is_channels_last(&self) -> bool {
        [&self.x, &self.y].iter().all(|meta| is_same(meta, &channels_last(meta)))
    }

    /// Whether an image of either tensor ends before the next one begins.
    fn has_images_outermost(&self) -> bool {
        let ends = |meta: &Meta| {
            let others = (1..meta.shape.rank()).map(|d| (meta.shape[d] - 1) * bytes(meta, d));
            others.sum::<usize>() < bytes(meta, 0)
        };
        ends(&self.x) && ends(&self.y)
    }

    /// Which dimension of the weights pieces of channels have a part of.
    fn channel(&self) -> usize {
        (self.pass == Propagation::GradInput) as usize
    }

    /// The most pieces, up to `wanted`, that the channels can be cut into.
    fn most_channel_pieces(&self, wanted: usize) -> usize {
        let fits = |parts: &usize| {
            !self.is_grouped() && self.w[self.channel()] % (CHANNELS * parts) as i64 == 0
        };
        (1..=wanted).rev().find(fits).unwrap_or(1)
    }

    /// The tensors' parts in the order of the primitive's arguments.
    fn parts(&self, x: Part, w: Part, bias: Part, y: Part) -> Parts {
        self.pass.order(x, w, self.bias.as_ref().map(|_| bias), y)
    }

    /// The convolution that computes some rows of an image of y, and its first row of x. `None` if
    /// the rows see padding alone.
    fn band(&self, first: usize, end: usize) -> Option<(Convolution, usize)> {
        let (window, height) = (&self.window, self.x.shape[2] as i64);
        let taps = self.w[self.w.len() + 2 - self.y.shape.rank()];
        let reach = (taps - 1) * (window.gap[0] + 1) + 1;
        let from = first as i64 * window.stride[0] - window.before[0];
        let to = (end as i64 - 1) * window.stride[0] - window.before[0] + reach;
        let (start, stop) = (from.clamp(0, height), to.clamp(0, height));
        let mut piece = self.clone();
        piece.window.before[0] = start - from;
        piece.window.after[0] = to - stop;
        (piece.x.shape[0], piece.y.shape[0]) = (1, 1);
        piece.x.shape[2] = (stop - start) as usize;
        piece.y.shape[2] = end - first;
        (piece.x, piece.y) = (channels_last(&piece.x), channels_last(&piece.y));
        (start < stop).then_some((piece, start as usize))
    }
}

/// Pieces of a convolution while they are collected.
struct Builder<'a> {
    of: &'a Convolution,
    /// The weights' layout.
    w: &'a Descriptor,
    pieces: Collected<(Meta, Meta, Window)>,
}

impl Builder<'_> {
    /// Adds a piece; false if oneDNN has no fast implementation for it.
    fn add(&mut self, piece: &Convolution, w: &Descriptor, parts: Parts) -> Result<bool> {
        let size = (piece.x.clone(), piece.y.clone(), piece.window.clone());
        self.pieces.add(size, || piece.choice(Some(w.copy(self.of.library)?)), parts)
    }

    /// Pieces of this many images; each piece's weights are this many bytes apart.
    fn images(mut self, images: usize, w_bytes: usize) -> Result<Option<Pieces>> {
        for (n, first) in (0..self.of.images()).step_by(images).enumerate() {
            let mut piece = self.of.clone();
            let count = images.min(self.of.images() - first);
            piece.x.shape[0] = count;
            piece.y.shape[0] = count;
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

    /// Pieces of this many rows of one image of y.
    fn rows(mut self, rows: usize) -> Result<Option<Pieces>> {
        let of = self.of;
        for image in 0..of.images() {
            for first in (0..of.y.shape[2]).step_by(rows) {
                let last = (first + rows).min(of.y.shape[2]);
                let Some((piece, start)) = of.band(first, last) else { return Ok(None) };
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

    /// This many pieces of the channels.
    fn channels(mut self, parts: usize) -> Result<Option<Pieces>> {
        let (of, d) = (self.of, self.of.channel());
        let channels = of.w[d] as usize / parts;
        let mut piece = of.clone();
        piece.w[d] = channels as i64;
        let images = if d == 0 { &mut piece.y } else { &mut piece.x };
        let columns = columns(images, channels);
        images.shape[1] = channels;
        *images = channels_last(images);
        piece.bias.iter_mut().for_each(|bias| bias.shape[0] = channels);
        let size = of.x.dtype.size();
        let Some((w, apart)) = self.w.part(of.library, &of.w, d, parts) else { return Ok(None) };
        for n in 0..parts {
            let images = Part { start: n * channels * size, columns: Some(columns) };
            let (x, y) = if d == 0 { (Part::default(), images) } else { (images, Part::default()) };
            let bias = Part::at(n * channels * size);
            let parts = of.parts(x, Part::at(n * apart * size), bias, y);
            if !self.add(&piece, &w, parts)? {
                return Ok(None);
            }
        }
        Ok(Some(self.pieces.done()))
    }
}

/// Dense images of this shape with their channels innermost.
pub(super) fn channels_last(meta: &Meta) -> Meta {
    let strides = meta.shape.dense_like(&channels_innermost(meta.shape.rank()));
    Meta { strides, ..meta.clone() }
}

/// Bytes from one to the next along a dimension.
fn bytes(meta: &Meta, d: usize) -> usize {
    meta.strides[d] as usize * meta.dtype.size()
}

/// The places of images as rows, of which pieces have some of the channels.
fn columns(images: &Meta, channels: usize) -> Columns {
    let size = images.dtype.size();
    let rows = images.numel() / images.shape[1];
    Columns { rows, bytes: channels * size, pitch: images.shape[1] * size }
}
