//! Tiles in corners of a skyline.
//!
//! Let tiles fall, and each lies at 0 or on another. So the first section of a valley, sections
//! that are lower than those beside them, either takes a tile that begins right there, or nothing
//! lies there and the floor rises to where something could; and so does the last one with tiles
//! that end there. That holds for any valley, in whatever order they are filled: a search may go to
//! the corner with the least choice, where tiles did not fit before rather than elsewhere.

pub(super) use std::cmp::Reverse;
use std::ops::Range;

use super::super::effort::Effort;
use super::failures::{Divided, Failures};
use super::problem::Problem;
use super::skyline::{self, Corner, Side, Tiles};
use super::state::State;
use super::{MOST_DEPTH, NODE, Verdict};

/// Looks for offsets of all tiles.
///
/// Where `is_thrifty`, those tiles come first at a corner that leave the least room free.
pub(super) fn search(
    problem: &Problem,
    is_thrifty: bool,
    offsets: &mut [usize],
    effort: &mut Effort,
) -> Verdict {
    let Some(state) = State::new(problem) else { return Verdict::Impossible };
    let failures = Failures::default();
    let mut search = Search { state, is_thrifty, offsets, effort, depth: 0, failures };
    search.parts(&(0..problem.sections))
}

struct Search<'a> {
    state: State<'a>,
    is_thrifty: bool,
    offsets: &'a mut [usize],
    effort: &'a mut Effort,
    /// How many tiles are placed and sections left free.
    depth: usize,
    /// What has no packing.
    failures: Failures,
}

impl Search<'_> {
    /// Packs each part of a part by itself.
    fn parts(&mut self, whole: &Range<usize>) -> Verdict {
        let parts = self.state.split(whole).into_iter();
        let parts: Vec<_> = parts.map(|part| (part.clone(), self.state.hash(&part))).collect();
        self.all(&parts, ())
    }

    /// The tiles to try in a corner; of a thrifty search those that can lie there, those first that
    /// leave the least room free.
    fn by_waste(&mut self, corner: &Corner, part: &Range<usize>) -> Tiles {
        if !self.is_thrifty {
            return corner.tiles.clone();
        }
        let mut ranked = Vec::new();
        for &tile in &corner.tiles {
            let mark = self.state.mark();
            if self.state.place(tile, corner.floor, part) {
                ranked.push((self.state.wasted(mark), tile));
            }
            self.state.undo(mark);
        }
        ranked.sort_by_key(|(wasted, _)| *wasted);
        ranked.into_iter().map(|(_, tile)| tile).collect()
    }

    /// Goes on from a change, unless that cannot be.
    fn attempt(&mut self, part: &Range<usize>, change: impl FnOnce(&mut State) -> bool) -> Verdict {
        let mark = self.state.mark();
        let verdict = if change(&mut self.state) { self.parts(part) } else { Verdict::Impossible };
        self.state.undo(mark);
        verdict
    }

    /// Where to go on, the best tiles first.
    fn corner(&self, part: &Range<usize>) -> Corner {
        let rank = |corner: &Corner| (self.choice(corner), corner.floor);
        let best = skyline::corners(&self.state, part).min_by_key(rank);
        let mut corner = best.expect("a part has a lowest section");
        let mut tiles = std::mem::take(&mut corner.tiles);
        tiles.sort_unstable_by_key(|tile| (self.preference(&corner, part, *tile), *tile));
        Corner { tiles, ..corner }
    }

    /// How much choice there is in a corner: the ways to go on, the fewer the more often a section
    /// of the valley could not take its tiles (after Boussemart et al., "Boosting systematic search
    /// by weighting constraints", 2004).
    fn choice(&self, corner: &Corner) -> usize {
        match corner.ways() {
            ways @ 0..=1 => ways,
            ways => {
                let blames = &self.state.blame[corner.valley.clone()];
                (ways << 32) / (1 + blames.iter().copied().max().unwrap_or(0))
            }
        }
    }

    /// What levels the skyline first, then what fills a valley up to its end, then in the preferred
    /// order.
    fn preference(&self, corner: &Corner, part: &Range<usize>, tile: u32) -> Reverse<(bool, bool)> {
        let span = self.state.problem.span(tile);
        let top = corner.floor + span.size;
        let valley = &corner.valley;
        let before = valley.start > part.start && self.state.floors[valley.start - 1] == top;
        let after = valley.end < part.end && self.state.floors[valley.end] == top;
        let fills = span.range() == *valley;
        let levels = match corner.side {
            Side::Start => before || fills && after,
            Side::End => after || fills && before,
        };
        Reverse((levels, fills))
    }
}

impl Divided for Search<'_> {
    type From = ();

    fn failures(&mut self) -> &mut Failures {
        &mut self.failures
    }

    fn depth(&mut self) -> &mut usize {
        &mut self.depth
    }

    /// Tries all ways at one corner.
    fn part(&mut self, part: &Range<usize>, (): ()) -> Verdict {
        if self.depth > MOST_DEPTH || self.effort.spend(NODE).is_none() {
            return Verdict::Unknown;
        }
        let corner = self.corner(part);
        let tiles = self.by_waste(&corner, part);
        for tile in tiles {
            self.offsets[tile as usize] = corner.floor;
            let verdict = self.attempt(part, |state| state.place(tile, corner.floor, part));
            if verdict != Verdict::Impossible {
                return verdict;
            }
        }
        let Some(to) = corner.waste else {
            return Verdict::Impossible;
        };
        self.attempt(part, |state| state.waste(corner.section(), to, &corner.tiles, part))
    }
}
