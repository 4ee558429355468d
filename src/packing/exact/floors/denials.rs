//! Tiles that do not lie where they could.
//!
//! A tile that a search passes over at some offset has to have another in its way there; else it
//! could fall, and that packing is found where the tile is not passed over.

use super::problem::Span;
use super::state::mix;

/// A tile that does not lie at a floor although it could.
#[derive(Clone, Copy, Debug)]
pub(super) struct Denial {
    pub(super) tile: u32,
    pub(super) floor: usize,
    /// Whether nothing is in its way yet.
    pub(super) is_open: bool,
}

impl Denial {
    pub(super) fn new(tile: u32, floor: usize) -> Denial {
        Denial { tile, floor, is_open: true }
    }

    /// Whether a tile is settled by another one on some floor, or by itself lying elsewhere.
    pub(super) fn is_settled_by(
        &self,
        denied: &Span,
        tile: u32,
        span: &Span,
        floor: usize,
    ) -> bool {
        self.tile == tile || denied.meets(span) && floor < self.floor + denied.size
    }

    /// A number that stands for it, and for the lowest offset of its tile.
    pub(super) fn hash(&self, support: usize) -> u128 {
        let tile = self.tile as usize;
        mix(DENIAL + tile, self.floor) ^ mix(DENIED + tile, support)
    }
}

/// These are no sections nor tiles.
const DENIAL: usize = 1 << 33;
const DENIED: usize = 1 << 34;
