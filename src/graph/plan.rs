//! Offsets in one arena for pieces of memory whose lifetimes are known.

mod online;

use super::liveness::{self, Lifetime};

/// Where each piece of memory lies in an arena.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The first byte of each piece; 0 for what takes no memory.
    pub offsets: Vec<usize>,
    /// Bytes of the arena.
    pub height: usize,
    /// What no plan can do without: the most bytes that live at once.
    pub bound: usize,
}

/// Pieces of memory that take some: who, when, how much.
#[derive(Clone, Copy, Debug)]
struct Piece {
    index: u32,
    life: Lifetime,
    size: usize,
}

/// Plans an arena. Offsets and sizes are multiples of `alignment`.
pub fn plan(lifetimes: &[Lifetime], sizes: &[usize], alignment: usize) -> Plan {
    let bound = liveness::bound(lifetimes, sizes, alignment);
    let pieces = pieces(lifetimes, sizes, alignment);
    let mut best = Plan { offsets: vec![0; sizes.len()], height: usize::MAX, bound };
    keep(&mut best, &pieces, online::forward(&pieces));
    if best.height > bound {
        keep(&mut best, &pieces, online::backward(&pieces));
    }
    best
}

/// In the order in which they are first needed.
fn pieces(lifetimes: &[Lifetime], sizes: &[usize], alignment: usize) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = (0u32..)
        .zip(lifetimes.iter().zip(sizes))
        .filter(|(_, (life, size))| !life.is_never() && **size > 0)
        .map(|(index, (&life, size))| {
            let size = size.next_multiple_of(alignment);
            Piece { index, life, size }
        })
        .collect();
    pieces.sort_by_key(|piece| (piece.life.first, std::cmp::Reverse(piece.size)));
    pieces
}

/// Takes over the offsets of `pieces` if their arena is smaller.
fn keep(best: &mut Plan, pieces: &[Piece], offsets: Vec<usize>) {
    let ends = pieces.iter().zip(&offsets).map(|(piece, offset)| offset + piece.size);
    let height = ends.max().unwrap_or(0);
    if height < best.height {
        best.height = height;
        for (piece, offset) in pieces.iter().zip(offsets) {
            best.offsets[piece.index as usize] = offset;
        }
    }
}

#[cfg(test)]
mod tests;
