//! Tensors with channels, cut into pieces that lie in one run of memory.

use std::ops::Range;

use super::super::access::Run;
use super::super::walk::{self, Walk};
use crate::ops::Meta;

/// Most elements of a piece, and most channels of a tile.
pub const LANES: usize = 256;
/// Elements that are worth sums of their own.
const WORTH: usize = 16 << 10;
/// Most sums that a channel's sum is made of.
const CHUNKS: usize = 64;

/// Three tensors of one shape (N, C, ...), cut into tiles: some channels, and some of the other
/// places, in the memory order of the first tensor. The tiles depend on the metas alone.
#[derive(Clone, Debug)]
pub struct Tiles {
    /// The number of channels.
    pub channels: usize,
    /// How many pieces the places of a channel are cut into.
    pub chunks: usize,
    /// Whether channels are what lies closest together.
    is_inner: bool,
    /// From a channel to the next.
    steps: [isize; 3],
    walk: Walk<3>,
}

/// Some channels, and a piece of their places.
#[derive(Clone, Debug)]
pub struct Tile {
    pub channels: Range<usize>,
    pub chunk: usize,
    rows: Range<usize>,
}

/// Elements in one run of memory: where it starts, and its step.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    starts: [isize; 3],
    steps: [isize; 3],
    length: usize,
}

impl Piece {
    /// Where it lies in one of the tensors.
    #[inline(always)]
    pub fn run(&self, tensor: usize) -> Run {
        Run { start: self.starts[tensor], step: self.steps[tensor], length: self.length }
    }
}

impl Tiles {
    pub fn new(metas: [&Meta; 3]) -> Tiles {
        let mut dims = walk::dims(metas);
        let channel = dims.remove(1);
        dims.sort_by_key(|d| std::cmp::Reverse(d.strides[0].unsigned_abs()));
        let step = channel.strides[0].unsigned_abs();
        let others = dims.iter().filter(|d| d.extent > 1);
        let is_closest = others.map(|d| d.strides[0].unsigned_abs()).all(|s| step < s);
        let (channels, walk) = (channel.extent, Walk::new(dims));
        let (rows, is_inner) = (walk.elements(), channels > 1 && is_closest);
        let chunks = if is_inner { (rows * channels / WORTH).min(rows / 64) } else { rows / WORTH };
        let chunks = chunks.clamp(1, CHUNKS);
        Tiles { channels, chunks, is_inner, steps: channel.strides, walk }
    }

    /// How many elements a channel has.
    pub fn rows(&self) -> usize {
        self.walk.elements()
    }

    /// How many tiles there are.
    pub fn count(&self) -> usize {
        let width = if self.is_inner { LANES } else { 1 };
        self.channels.div_ceil(width) * self.chunks
    }

    /// Tile `index` of [`Tiles::count`].
    pub fn get(&self, index: usize) -> Tile {
        let width = if self.is_inner { LANES } else { 1 };
        let (chunk, start) = (index % self.chunks, index / self.chunks * width);
        let bound = |chunk: usize| self.rows() * chunk / self.chunks;
        Tile {
            channels: start..(start + width).min(self.channels),
            chunk,
            rows: bound(chunk)..bound(chunk + 1),
        }
    }

    /// Fills `lanes` with a value of the channel of each lane of a tile's pieces.
    #[inline(always)]
    pub fn spread<V: Copy>(&self, tile: &Tile, lanes: &mut [V; LANES], value: impl Fn(usize) -> V) {
        if self.is_inner {
            lanes.iter_mut().zip(tile.channels.clone()).for_each(|(lane, c)| *lane = value(c));
        } else {
            lanes.fill(value(tile.channels.start));
        }
    }

    /// Hands the sum of each channel of a tile to `take`, given the sums of the lanes.
    pub fn collect(&self, tile: &Tile, lanes: &[f64; LANES], mut take: impl FnMut(usize, f64)) {
        if self.is_inner {
            tile.channels.clone().zip(lanes).for_each(|(c, sum)| take(c, *sum));
        } else {
            take(tile.channels.start, lanes.iter().sum());
        }
    }

    /// Calls `visit` for each piece of a tile: one place of all its channels, or a run of places
    /// of its one channel.
    #[inline(always)]
    pub fn pieces(&self, tile: &Tile, mut visit: impl FnMut(Piece)) {
        let inner = self.walk.inner().strides;
        let first = at([0; 3], self.steps, tile.channels.start);
        for (offsets, run) in self.walk.runs(tile.rows.clone()) {
            let start = [0, 1, 2].map(|t| offsets[t] + first[t]);
            if self.is_inner {
                let (steps, length) = (self.steps, tile.channels.len());
                (0..run).for_each(|i| visit(Piece { starts: at(start, inner, i), steps, length }));
            } else {
                for done in (0..run).step_by(LANES) {
                    let (starts, length) = (at(start, inner, done), LANES.min(run - done));
                    visit(Piece { starts, steps: inner, length });
                }
            }
        }
    }

    /// Where the first tensor has the first element of a channel.
    pub fn first(&self, channel: usize) -> isize {
        channel as isize * self.steps[0]
    }
}

#[inline(always)]
fn at(start: [isize; 3], steps: [isize; 3], i: usize) -> [isize; 3] {
    [0, 1, 2].map(|t| start[t] + steps[t] * i as isize)
}
