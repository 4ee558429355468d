//! An exact search for whether an arena of a given height holds all pieces.

mod branch;
mod effort;
mod fillers;
mod floors;
mod groups;
mod pq_tree;
mod solve;
mod tiling;

use super::Piece;
use crate::packing::Lifetime;
use branch::Outcome;
pub use effort::Effort;
use floors::Task;
use tiling::Tile;

/// Whether the pieces fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packing {
    /// They do, at these offsets; 0 for pieces that take no memory.
    Fits(Vec<usize>),
    /// No packing exists.
    Impossible,
    /// The effort was spent before an answer was found.
    Unknown,
}

/// Which searches to use for a packing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// All of them.
    Any,
    /// Only `tiling`, which finds packings that leave hardly any free space.
    Tiling,
    /// Only `branch`, which can also prove that there is no packing.
    Branch,
    /// Only `floors`, searches of which some can prove that, too, with more inference; one of them
    /// is that of Moffitt (2023).
    Floors,
}

/// Looks for offsets, multiples of `alignment`, at which every piece ends at or below `capacity`.
pub fn pack(
    lifetimes: &[Lifetime],
    sizes: &[usize],
    alignment: usize,
    capacity: usize,
    method: Method,
    effort: Effort,
) -> Packing {
    let pieces = super::pieces(lifetimes, sizes, alignment);
    match search(&pieces, capacity - capacity % alignment, method, effort) {
        Outcome::Found(offsets) => Packing::Fits(super::spread(&pieces, &offsets, sizes.len())),
        Outcome::Impossible => Packing::Impossible,
        Outcome::Unknown => Packing::Unknown,
    }
}

/// Offsets at which every piece ends at or below `capacity`, if some are found.
pub(super) fn offsets(
    pieces: &[Piece],
    capacity: usize,
    method: Method,
    effort: Effort,
) -> Option<Vec<usize>> {
    match search(pieces, capacity, method, effort) {
        Outcome::Found(offsets) => Some(offsets),
        Outcome::Impossible | Outcome::Unknown => None,
    }
}

/// Solves one window after the other.
fn search(pieces: &[Piece], capacity: usize, method: Method, mut effort: Effort) -> Outcome {
    let mut offsets = Vec::new();
    for window in windows(pieces) {
        let (tiles, durations) = (tiles(window), durations(window));
        let task = Task { tiles: &tiles, durations: &durations, height: capacity };
        match solve::solve(task, method, &mut effort) {
            Outcome::Found(found) => offsets.extend(found),
            outcome => return outcome,
        }
    }
    Outcome::Found(offsets)
}

/// Splits pieces, which are in the order in which they begin, into runs that are not live together.
fn windows(pieces: &[Piece]) -> impl Iterator<Item = &[Piece]> {
    let mut end = 0;
    pieces.chunk_by(move |one, other| {
        end = one.last.max(end);
        other.first <= end
    })
}

fn tiles(pieces: &[Piece]) -> Vec<Tile> {
    pieces.iter().map(|p| Tile { start: p.first, end: p.last + 1, size: p.size }).collect()
}

fn durations(pieces: &[Piece]) -> Vec<u32> {
    pieces.iter().map(|piece| piece.steps).collect()
}

#[cfg(test)]
mod tests;
