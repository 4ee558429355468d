//! Offsets in one arena for pieces of memory whose lifetimes are known.
//!
//! Finding the lowest arena is NP-hard (dynamic storage allocation); the best of several
//! heuristics is the lower bound itself for most training steps, where activations are freed in
//! the reverse order of their making. docs/planning.md tells more.

pub mod exact;
mod first_fit;
mod online;
mod orders;
mod random;
mod search;
mod skyline;
pub mod traces;

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

/// Heuristics whose time is quadratic are for at most so many pieces.
const MOST_QUADRATIC: usize = 20_000;

/// The exact search is for at most so many pieces, and takes at most so many steps.
const MOST_EXACT: usize = 500;
const EXACT_STEPS: u64 = 1 << 15;

/// A piece of memory that takes some. Time is counted in pieces: it is the number of those that
/// begin earlier, so that two pieces meet just where their lifetimes do.
#[derive(Clone, Copy, Debug)]
struct Piece {
    /// Its place in the caller's list.
    index: u32,
    first: u32,
    last: u32,
    size: usize,
}

impl Piece {
    fn duration(&self) -> usize {
        (self.last - self.first) as usize + 1
    }

    fn meets(&self, other: &Piece) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// Plans an arena: the best of several heuristics, each of which is tried only while the bound is
/// not met. Offsets and sizes are multiples of `alignment`. The same pieces have the same plan.
pub fn plan(lifetimes: &[Lifetime], sizes: &[usize], alignment: usize) -> Plan {
    let bound = liveness::bound(lifetimes, sizes, alignment);
    let pieces = pieces(lifetimes, sizes, alignment);
    let mut best = Best { offsets: vec![0; pieces.len()], height: usize::MAX, bound };
    best.keep(&pieces, online::outward(&pieces, crest(&pieces)));
    best.attempt(&pieces, || Some(online::forward(&pieces)));
    best.attempt(&pieces, || Some(online::backward(&pieces)));
    if pieces.len() <= MOST_QUADRATIC {
        improve(&pieces, &mut best);
    }
    Plan { offsets: spread(&pieces, &best.offsets, sizes.len()), height: best.height, bound }
}

/// Offsets by the place of each piece in the caller's list of `count`.
fn spread(pieces: &[Piece], offsets: &[usize], count: usize) -> Vec<usize> {
    let mut spread = vec![0; count];
    for (piece, offset) in pieces.iter().zip(offsets) {
        spread[piece.index as usize] = *offset;
    }
    spread
}

/// Tries what takes quadratic time, then what takes longer.
fn improve(pieces: &[Piece], best: &mut Best) {
    let area = |piece: &Piece| piece.duration() * piece.size;
    for key in [Piece::duration as fn(&Piece) -> usize, area, |piece| piece.size] {
        best.attempt(pieces, || Some(search::turned(pieces, &skyline::place(pieces, key))));
    }
    if !best.is_done() {
        search::search(pieces, &orders::orders(pieces), best);
    }
    if !best.is_near() && pieces.len() <= MOST_EXACT {
        let (bound, effort) = (best.bound, exact::Effort::steps(EXACT_STEPS));
        best.attempt(pieces, || exact::offsets(pieces, bound, effort));
    }
}

/// The lowest arena so far.
struct Best {
    offsets: Vec<usize>,
    height: usize,
    bound: usize,
}

impl Best {
    fn is_done(&self) -> bool {
        self.height == self.bound
    }

    /// A height below which hardly anything could be saved.
    fn enough(&self) -> usize {
        self.bound + self.bound / 2048
    }

    fn is_near(&self) -> bool {
        self.height <= self.enough()
    }

    /// Takes over what is lower.
    fn keep(&mut self, pieces: &[Piece], offsets: Vec<usize>) {
        let ends = pieces.iter().zip(&offsets).map(|(piece, offset)| offset + piece.size);
        let height = ends.max().unwrap_or(0);
        if height < self.height {
            (self.height, self.offsets) = (height, offsets);
        }
    }

    /// Tries a heuristic unless the bound is met.
    fn attempt(&mut self, pieces: &[Piece], place: impl FnOnce() -> Option<Vec<usize>>) {
        if !self.is_done()
            && let Some(offsets) = place()
        {
            self.keep(pieces, offsets);
        }
    }
}

/// The pieces in the order in which they begin; of those that begin at once the largest first.
fn pieces(lifetimes: &[Lifetime], sizes: &[usize], alignment: usize) -> Vec<Piece> {
    let all = (0u32..).zip(lifetimes.iter().zip(sizes));
    let some = all.filter(|(_, (life, size))| !life.is_never() && **size > 0);
    let mut pieces: Vec<Piece> = some
        .map(|(index, (life, size))| {
            let size = size.next_multiple_of(alignment);
            Piece { index, first: life.first, last: life.last, size }
        })
        .collect();
    pieces.sort_by_key(|piece| (piece.first, std::cmp::Reverse(piece.size)));
    count_time(&mut pieces);
    pieces
}

/// When most bytes live at once.
fn crest(pieces: &[Piece]) -> u32 {
    let mut change = vec![0isize; pieces.len() + 1];
    for piece in pieces {
        change[piece.first as usize] += piece.size as isize;
        change[piece.last as usize + 1] -= piece.size as isize;
    }
    let mut live = 0;
    let level = |(moment, change)| {
        live += change;
        (live, moment)
    };
    (0u32..).zip(change).map(level).max().map_or(0, |(_, moment)| moment)
}

/// Counts time in pieces instead of nodes.
fn count_time(pieces: &mut [Piece]) {
    let end = pieces.iter().map(|piece| piece.last as usize + 2).max().unwrap_or(0);
    // How many pieces begin before each node.
    let mut before = vec![0u32; end];
    pieces.iter().for_each(|piece| before[piece.first as usize + 1] += 1);
    (1..end).for_each(|node| before[node] += before[node - 1]);
    for piece in pieces {
        piece.first = before[piece.first as usize];
        piece.last = before[piece.last as usize + 1] - 1;
    }
}

#[cfg(test)]
mod tests;
