//! Tensors with channels, cut into pieces of evenly spaced elements.

use std::ops::Range;

use crate::kernels::cpu::strided::access::Run;
use crate::kernels::cpu::strided::walk::{self, Walk};
use crate::ops::Meta;

/// The maximum number of elements of a piece, and of channels of a tile.
pub const LANES: usize = 256;
/// The number of elements that justifies separate sums.
const WORTH: usize = 16 << 10;
/// The maximum number of chunks of a channel.
const CHUNKS: usize = 64;

/// Three tensors of one shape (N, C, ...), cut into tiles: some channels, and some of the other
/// positions, in the memory order of the first tensor. The tiles depend on the metas alone.
#[derive(Clone, Debug)]
pub struct Tiles {
    /// The number of channels.
    pub channels: usize,
    /// The number of chunks that the positions of a channel are cut into.
    pub chunks: usize,
    /// Whether the channel axis is innermost in memory.
    is_inner: bool,
    /// Strides of the channel axis.
    steps: [isize; 3],
    walk: Walk<3>,
}

/// Some channels, and a chunk of their positions.
#[derive(Clone, Debug)]
pub struct Tile {
    pub channels: Range<usize>,
    pub chunk: usize,
    rows: Range<usize>,
}

/// Evenly spaced elements in memory: where they start, and their distance.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    starts: [isize; 3],
    steps: [isize; 3],
    length: usize,
}

impl Piece {
    /// The piece as a run of one of the tensors.
    #[inline(always)]
    pub fn run(&self, tensor: usize) -> Run {
        Run { start: self.starts[tensor], step: self.steps[tensor], length: self.length }
    }
}

impl Tiles {
    pub fn new(metas: [&Meta; 3]) -> Tiles {
        let mut dims = walk::dims(metas);
        let channel = dims.remove(1);
        let dims = walk::sorted(&dims, 0);
        let step = channel.strides[0].unsigned_abs();
        let others = dims.iter().filter(|d| d.extent > 1);
        let is_closest = others.map(|d| d.strides[0].unsigned_abs()).all(|s| step < s);
        let (channels, walk) = (channel.extent, Walk::new(dims));
        let (rows, is_inner) = (walk.elements(), channels > 1 && is_closest);
        let chunks = if is_inner { (rows * channels / WORTH).min(rows / 64) } else { rows / WORTH };
        let chunks = chunks.clamp(1, CHUNKS);
        Tiles { channels, chunks, is_inner, steps: channel.strides, walk }
    }

    /// The number of elements of a channel.
    pub fn rows(&self) -> usize {
        self.walk.elements()
    }

    /// The number of tiles.
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

    /// Fills `lanes` with the value of each lane's channel, for the pieces of a tile.
    #[inline(always)]
    pub fn spread<V: Copy>(&self, tile: &Tile, lanes: &mut [V; LANES], value: impl Fn(usize) -> V) {
        if self.is_inner {
            lanes.iter_mut().zip(tile.channels.clone()).for_each(|(lane, c)| *lane = value(c));
        } else {
            lanes.fill(value(tile.channels.start));
        }
    }

    /// Passes the sum of each channel of a tile to `take`, given the sums of the lanes.
    pub fn collect(&self, tile: &Tile, lanes: &[f64; LANES], mut take: impl FnMut(usize, f64)) {
        if self.is_inner {
            tile.channels.clone().zip(lanes).for_each(|(c, sum)| take(c, *sum));
        } else {
            take(tile.channels.start, lanes.iter().sum());
        }
    }

    /// Calls `visit` for each piece of a tile: one position of all its channels, or a run of
    /// positions of its only channel.
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

    /// The offset of a channel's first element in the first tensor.
    pub fn first(&self, channel: usize) -> isize {
        channel as isize * self.steps[0]
    }
}

#[inline(always)]
fn at(start: [isize; 3], steps: [isize; 3], i: usize) -> [isize; 3] {
    [0, 1, 2].map(|t| start[t] + steps[t] * i as isize)
}
