//! A convolution as a oneDNN primitive, and how it is cut into pieces: some of the images, some
//! rows of an image, or some of the channels. Gradients of small weights are sums over pieces of
//! the images.

use std::ops::Range;

use smallvec::SmallVec;

use super::builder::Builder;
use crate::device::onednn::{
    self, Choice, Descriptor, Gate, Library, Propagation, Tensors, Window,
};
use crate::device::team::share;
use crate::dtype::DType;
use crate::error::Result;
use crate::kernels::Width;
use crate::kernels::cpu::onednn::layout::{describe, is_same};
use crate::kernels::cpu::onednn::pieces::{self, Part, Parts, Pieces};
use crate::ops::Meta;
use crate::ops::conv::channels_innermost;

/// The usual number of pieces.
const MOST: usize = 16;
/// At least this many images make pieces of images; fewer are cut further.
const MANY_IMAGES: usize = 8;
/// The fewest rows of a piece where rows of y share rows of x.
const FEWEST_ROWS: usize = 4;
/// The fewest places of a piece of rows.
const FEWEST_PLACES: usize = 64;
/// From so many pieces on, threads hardly wait for each other.
const FEW: usize = 4;
/// The channels of a piece are a multiple of one of these, which is a block of packed weights.
const CHANNELS: [i64; 5] = [16, 24, 32, 48, 64];
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
    /// A function of the result by which that is multiplied.
    pub gate: Option<Gate>,
    /// Extents of the weights, with groups as a leading dimension of its own if there are several.
    pub w: SmallVec<[i64; 6]>,
}

/// How a convolution is cut, which depends on the metas and on oneDNN's layouts alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cut {
    /// This many images a piece.
    Images(usize),
    /// So many pieces of the rows of each image.
    Rows(usize),
    /// So many pieces of the channels that the weights have first in memory, in blocks of so many.
    Channels(usize, usize),
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
        onednn::convolution(self.library, self.pass, &self.window, tensors, self.gate)
    }

    /// The convolution in pieces for the team, or as a whole for the calling thread, and the layout
    /// of the weights.
    pub fn pieces(&self, whole: Choice, width: Option<Width>) -> Result<(Descriptor, Pieces)> {
        if let Some(width) = width {
            for cut in self.cuts(&whole.weights).into_iter().flatten() {
                if let Some(found) = self.cut_by(cut, width, &whole.weights)? {
                    return Ok(found);
                }
            }
            log::debug!("{:?} of {:?} runs on one thread", self.pass, self.x);
        }
        Ok((whole.weights.copy(self.library)?, Pieces::whole(whole.build()?)))
    }

    /// Pieces, and the layout of the weights: that of the whole, or that of a piece, as oneDNN may
    /// want other blocks of channels for fewer places.
    fn cut_by(
        &self,
        cut: Cut,
        width: Width,
        w: &Descriptor,
    ) -> Result<Option<(Descriptor, Pieces)>> {
        if let Some(pieces) = Builder::new(self, w, width).pieces(cut)? {
            return Ok(Some((w.copy(self.library)?, pieces)));
        }
        let Some(piece) = self.sample(cut) else { return Ok(None) };
        let Some(own) = piece.choice(None)?.map(|choice| choice.weights) else { return Ok(None) };
        let pieces = Builder::new(self, &own, width).pieces(cut)?;
        Ok(pieces.map(|pieces| (own, pieces)))
    }

    /// Ways to cut it, the best one first.
    fn cuts(&self, w: &Descriptor) -> [Option<Cut>; 3] {
        let (images, wanted) = (self.images(), self.wanted());
        let is_usual = self.is_channels_last();
        if wanted == 1 || !is_usual && !self.has_images_outermost() {
            return [None; 3];
        }
        let of_images = |pieces: usize| images.div_ceil(pieces.clamp(1, images));
        let channels = if is_usual { self.channels(w, wanted) } else { None };
        let by_channels = channels.map_or(1, |(pieces, _)| pieces);
        let channels = channels.map(|(pieces, unit)| Cut::Channels(pieces, unit));
        if self.pass == Propagation::GradWeight {
            let sums = self.most_sums(wanted);
            return match sums >= by_channels {
                true => [(sums > 1).then(|| Cut::Sums(of_images(sums))), None, None],
                false => [channels, None, None],
            };
        }
        if images >= wanted.min(MANY_IMAGES) || !is_usual {
            return [(images > 1).then(|| Cut::Images(of_images(wanted))), None, None];
        }
        let bands = self.bands(wanted.div_ceil(images));
        let rows = (bands > 1).then_some(Cut::Rows(bands));
        let images = (images > 1).then_some(Cut::Images(1));
        let is_wide = self.x.bytes() / self.images() >= self.weight_bytes();
        match (bands.min(FEW), is_wide) >= (by_channels.min(FEW), true) {
            true => [rows, channels, images],
            false => [channels, rows, images],
        }
    }

    /// How many pieces of rows an image is cut into where so many are wanted.
    fn bands(&self, wanted: usize) -> usize {
        let rows = &self.y.shape[2..];
        let fewest = match self.reach() {
            1 => FEWEST_PLACES.div_ceil(rows[1..].iter().product::<usize>().max(1)),
            _ => FEWEST_ROWS,
        };
        let is_cut = self.pass == Propagation::Forward || self.has_rows_of_its_own();
        if is_cut { pieces::balanced(wanted.min(rows[0] / fewest)) } else { 1 }
    }

    /// How many pieces are wanted. Gradients of weights are not cut for what they move, since pieces
    /// have to be added.
    fn wanted(&self) -> usize {
        let bytes = match self.pass {
            Propagation::GradWeight => 0,
            _ => self.x.bytes() + self.y.bytes() + self.weight_bytes(),
        };
        pieces::count(self.flops(), bytes, MOST)
    }

    /// The most sums, up to `wanted`, that a gradient of the weights is made of.
    fn most_sums(&self, wanted: usize) -> usize {
        match self.x.dtype {
            DType::Float32 => {
                let fits = SUMS_BYTES / self.weight_bytes().max(1);
                fits.min(wanted).min(self.images()).max(1)
            }
            _ => 1,
        }
    }

    fn weight_bytes(&self) -> usize {
        self.w.iter().product::<i64>() as usize * self.x.dtype.size()
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

    /// How many rows of x a row of y extends over.
    fn reach(&self) -> i64 {
        let taps = self.w[self.w.len() + 2 - self.y.shape.rank()];
        (taps - 1) * (self.window.gap[0] + 1) + 1
    }

    /// Whether each row of y has rows of x that no other one has, and x no others, as where images
    /// are enlarged by a transposed convolution.
    fn has_rows_of_its_own(&self) -> bool {
        let (stride, rows) = (self.window.stride[0], [&self.x, &self.y].map(|t| t.shape[2] as i64));
        self.reach() == stride && self.window.before[0] == 0 && rows[0] == rows[1] * stride
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
    pub fn channel(&self) -> usize {
        (self.pass == Propagation::GradInput) as usize
    }

    /// How many pieces of channels there are, up to `wanted`, and of how many channels they are a
    /// multiple, where the layout of the weights has parts of so many.
    fn channels(&self, w: &Descriptor, wanted: usize) -> Option<(usize, usize)> {
        let (all, unit) = (self.w[self.channel()] as usize, self.unit(w)?);
        let units = all.div_ceil(unit);
        // Many pieces of a block each would read the images too often.
        let pieces =
            if units > wanted { pieces::balanced(wanted.min(units.div_ceil(2))) } else { units };
        // The last piece of a gradient of the weights would have to write channels that there are not.
        let is_even = self.pass != Propagation::GradWeight || all.is_multiple_of(unit);
        (pieces > 1 && is_even).then_some((pieces, unit))
    }

    /// The fewest channels that parts of the weights can have: a block of the layout.
    pub fn unit(&self, w: &Descriptor) -> Option<usize> {
        let d = self.channel();
        let can_be = |unit: &i64| w.apart(self.library, &self.w, d, *unit).is_some();
        let is_cut = !self.is_grouped();
        is_cut.then(|| CHANNELS.into_iter().find(can_be)).flatten().map(|unit| unit as usize)
    }

    /// A piece whose layout of the weights others may share.
    fn sample(&self, cut: Cut) -> Option<Convolution> {
        match cut {
            Cut::Images(images) | Cut::Sums(images) => Some(self.of_images(images)),
            Cut::Rows(bands) => Some(self.band(share(self.y.shape[2], 1, bands, 1))?.0),
            Cut::Channels(..) => None,
        }
    }

    /// The same for so many of the channels that are cut.
    pub fn of_channels(&self, channels: usize) -> Convolution {
        let mut piece = self.clone();
        piece.w[self.channel()] = channels as i64;
        piece.bias.iter_mut().for_each(|bias| bias.shape[0] = channels);
        let images = if self.channel() == 0 { &mut piece.y } else { &mut piece.x };
        images.shape[1] = channels;
        *images = channels_last(images);
        piece
    }

    /// The same for so many images.
    pub fn of_images(&self, images: usize) -> Convolution {
        let mut piece = self.clone();
        (piece.x.shape[0], piece.y.shape[0]) = (images, images);
        piece
    }

    /// The tensors' parts in the order of the primitive's arguments.
    pub fn parts(&self, x: Part, w: Part, bias: Part, y: Part) -> Parts {
        self.pass.order(x, w, self.bias.as_ref().map(|_| bias), y)
    }

    /// The convolution that computes some rows of an image of y, and its first row of x. `None` if
    /// the rows see padding alone.
    pub fn band(&self, rows: Range<usize>) -> Option<(Convolution, usize)> {
        let Range { start: first, end } = rows;
        let (window, height) = (&self.window, self.x.shape[2] as i64);
        let from = first as i64 * window.stride[0] - window.before[0];
        let to = (end as i64 - 1) * window.stride[0] - window.before[0] + self.reach();
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

/// Dense images of this shape with their channels innermost.
pub(super) fn channels_last(meta: &Meta) -> Meta {
    let strides = meta.shape.dense_like(&channels_innermost(meta.shape.rank()));
    Meta { strides, ..meta.clone() }
}

/// Bytes from one to the next along a dimension.
pub(super) fn bytes(meta: &Meta, d: usize) -> usize {
    meta.strides[d] as usize * meta.dtype.size()
}
