//! Memory planning: offsets in one arena for pieces of memory whose lifetimes are known.
//!
//! Finding the smallest arena is NP-hard (dynamic storage allocation). The best of several
//! heuristics reaches the lower bound for most training steps, where activations are freed in the
//! reverse order of their creation. See docs/planning.md for details.

pub mod exact;
mod first_fit;
mod lifetime;
mod online;
mod orders;
mod random;
mod search;
mod skyline;
#[cfg(test)]
pub(crate) mod testing;
pub mod traces;

pub use lifetime::{Lifetime, bound, curve};

/// The placement of pieces of memory in an arena.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The offset of each piece; 0 for pieces that take no memory.
    pub offsets: Vec<usize>,
    /// Bytes of the arena.
    pub height: usize,
    /// A lower bound on the height of any plan: the most bytes that are live at once.
    pub bound: usize,
}

/// Heuristics that take quadratic time are tried for at most this many pieces.
const MOST_QUADRATIC: usize = 20_000;

/// The exact search is tried for at most this many pieces, and takes at most `EXACT_STEPS` steps:
/// too few for the searches by floors, which are far slower, to begin.
const MOST_EXACT: usize = 500;
const EXACT_STEPS: u64 = 1 << 15;

/// A non-empty piece of memory. Time is counted in pieces, by the number of those that begin
/// earlier, so that two pieces meet exactly if their lifetimes do.
#[derive(Clone, Copy, Debug)]
struct Piece {
    /// Its index in the caller's list.
    index: u32,
    first: u32,
    last: u32,
    size: usize,
    /// The caller's steps from its first to its last.
    steps: u32,
}

impl Piece {
    fn duration(&self) -> usize {
        (self.last - self.first) as usize + 1
    }

    fn meets(&self, other: &Piece) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// Plans an arena with the best of several heuristics, which are tried until one reaches the bound.
/// Offsets are multiples of `alignment`, and sizes are rounded up to it. The same pieces always get
/// the same plan.
pub fn plan(lifetimes: &[Lifetime], sizes: &[usize], alignment: usize) -> Plan {
    let bound = lifetime::bound(lifetimes, sizes, alignment);
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

/// The offsets by index in the caller's list of `count` pieces.
fn spread(pieces: &[Piece], offsets: &[usize], count: usize) -> Vec<usize> {
    let mut spread = vec![0; count];
    for (piece, offset) in pieces.iter().zip(offsets) {
        spread[piece.index as usize] = *offset;
    }
    spread
}

/// Tries heuristics that take quadratic time, then slower ones.
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
        best.attempt(pieces, || exact::offsets(pieces, bound, exact::Method::Any, effort));
    }
}

/// The best plan so far.
struct Best {
    offsets: Vec<usize>,
    height: usize,
    bound: usize,
}

impl Best {
    fn is_done(&self) -> bool {
        self.height == self.bound
    }

    /// A height that is close enough to the bound to stop the search.
    fn enough(&self) -> usize {
        self.bound + self.bound / 2048
    }

    fn is_near(&self) -> bool {
        self.height <= self.enough()
    }

    /// Keeps the offsets if they give a lower arena.
    fn keep(&mut self, pieces: &[Piece], offsets: Vec<usize>) {
        let ends = pieces.iter().zip(&offsets).map(|(piece, offset)| offset + piece.size);
        let height = ends.max().unwrap_or(0);
        if height < self.height {
            (self.height, self.offsets) = (height, offsets);
        }
    }

    /// Tries a heuristic unless the bound has been reached.
    fn attempt(&mut self, pieces: &[Piece], place: impl FnOnce() -> Option<Vec<usize>>) {
        if !self.is_done()
            && let Some(offsets) = place()
        {
            self.keep(pieces, offsets);
        }
    }
}

/// The pieces in the order in which they begin, those that begin at once by descending size.
fn pieces(lifetimes: &[Lifetime], sizes: &[usize], alignment: usize) -> Vec<Piece> {
    let all = (0u32..).zip(lifetimes.iter().zip(sizes));
    let some = all.filter(|(_, (life, size))| !life.is_never() && **size > 0);
    let mut pieces: Vec<Piece> = some
        .map(|(index, (life, size))| {
            let size = size.next_multiple_of(alignment);
            let steps = life.last - life.first;
            Piece { index, first: life.first, last: life.last, size, steps }
        })
        .collect();
    pieces.sort_by_key(|piece| (piece.first, std::cmp::Reverse(piece.size)));
    count_time(&mut pieces);
    pieces
}

/// The moment at which most bytes are live.
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
