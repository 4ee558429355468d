//! Tiles in the order of their offsets.
//!
//! Every packing becomes one in which each tile lies at 0 or on another by letting tiles fall. Such
//! packings are made by placing tiles as low as those before let them, in the order of offsets, and
//! of equal offsets in the preferred order; so no tile is placed before the last one in that order
//! (canonical solutions, Moffitt 2023). And no tile is placed at an offset below which another that
//! is left has all its room: let that one fall, and the packing is one that is found elsewhere
//! (dominance). A tile that is passed over has to lie on one that is still to come, which raises it.

use std::ops::Range;

use super::super::effort::Effort;
use super::failures::{Divided, Failures};
use super::problem::Problem;
use super::state::{State, mix};
use super::{MOST_DEPTH, NODE, Verdict};

/// Looks for offsets of all tiles.
pub(super) fn search(problem: &Problem, offsets: &mut [usize], effort: &mut Effort) -> Verdict {
    let Some(state) = State::new(problem) else { return Verdict::Impossible };
    let mut search = Search { state, offsets, effort, depth: 0, failures: Failures::default() };
    search.parts(&(0..problem.sections), (0, 0))
}

/// An offset, and a tile there.
type Position = (usize, u32);

struct Search<'a> {
    state: State<'a>,
    offsets: &'a mut [usize],
    effort: &'a mut Effort,
    /// How many tiles are placed and sections left free.
    depth: usize,
    /// What has no packing.
    failures: Failures,
}

impl Search<'_> {
    /// Packs each part of a part by itself, with nothing before the last place.
    fn parts(&mut self, whole: &Range<usize>, last: Position) -> Verdict {
        let parts = self.state.split(whole).into_iter();
        let hash = |part: &_| self.state.hash(part) ^ mix(LAST + last.1 as usize, last.0);
        let parts: Vec<_> = parts.map(|part| (part.clone(), hash(&part))).collect();
        self.all(&parts, last)
    }

    /// Goes on from a tile.
    fn attempt(&mut self, part: &Range<usize>, next: Position) -> Verdict {
        let mark = self.state.mark();
        self.offsets[next.1 as usize] = next.0;
        let mut verdict = Verdict::Impossible;
        if self.state.place(next.1, next.0, part) && self.state.is_open_above(next.0, part) {
            verdict = self.parts(part, next);
        }
        self.state.undo(mark);
        verdict
    }

    /// Goes on without a tile at a place, to others; whether there is a point in that.
    fn pass_over(&mut self, part: &Range<usize>, (offset, tile): Position) -> bool {
        let is_there = self.state.supports[tile as usize] == offset;
        !is_there || self.state.deny(tile, part) && self.state.is_open_above(offset, part)
    }

    /// Which tiles may come next, and where, in order.
    fn options(&self, part: &Range<usize>, last: Position) -> Vec<Position> {
        let (state, problem) = (&self.state, self.state.problem);
        let tiles = || problem.begin[part.clone()].iter().flatten();
        let places =
            || tiles().map(|&t| (state.supports[t as usize], t)).filter(|p| state.is_left(p.1));
        let least = places().map(|(support, tile)| support + problem.span(tile).size).min();
        let is_on_floor = |(support, tile): &Position| {
            let floors = &state.floors[problem.span(*tile).range()];
            floors.iter().max() == Some(support)
        };
        let is_first = |tile| !problem.twin(tile).is_some_and(|twin| state.is_left(twin));
        let may_follow =
            |next: &Position| *next >= last && Some(next.0) < least && is_first(next.1);
        let mut options: Vec<Position> = places().filter(may_follow).filter(is_on_floor).collect();
        options.sort_unstable();
        options
    }
}

impl Divided for Search<'_> {
    type From = Position;

    fn failures(&mut self) -> &mut Failures {
        &mut self.failures
    }

    fn depth(&mut self) -> &mut usize {
        &mut self.depth
    }

    /// Tries all tiles that may come next.
    fn part(&mut self, part: &Range<usize>, last: Position) -> Verdict {
        if self.depth > MOST_DEPTH || self.effort.spend(NODE).is_none() {
            return Verdict::Unknown;
        }
        let start = self.state.mark();
        let mut verdict = Verdict::Impossible;
        for next in self.options(part, last) {
            // Floors may have risen since.
            if self.state.supports[next.1 as usize] == next.0 {
                verdict = self.attempt(part, next);
            }
            if verdict != Verdict::Impossible || !self.pass_over(part, next) {
                break;
            }
        }
        self.state.undo(start);
        verdict
    }
}

/// No section, tile or denial.
const LAST: usize = 1 << 35;
