//! A beam of skylines, each as far as the others.
//!
//! All ways to go on at the corner with the least choice are tried from each state, and of all that
//! come of it those are kept that left the least room free. So an early mistake does not cost what
//! comes after it: that is what a search in depth suffers from where a little room is free
//! everywhere.

use std::ops::Range;

use rustc_hash::FxHashSet;

use super::super::effort::Effort;
use super::problem::Problem;
use super::skyline::{self, Corner};
use super::state::{NONE, State};
use super::{NODE, Verdict};

/// How states are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::packing::exact) enum Measure {
    /// By the bytes that were left free, of all sections.
    Bytes,
    /// By their share of what may be left free.
    Share,
}

/// Looks for offsets of all tiles, as wide as the effort lets it; never finds out that there are
/// none.
pub(super) fn search(
    problem: &Problem,
    measure: Measure,
    offsets: &mut [usize],
    effort: &mut Effort,
) -> Verdict {
    let Some(state) = State::new(problem) else { return Verdict::Impossible };
    let slacks = state.rests.iter().map(|rest| problem.height - rest).collect();
    let totals = state.rests.clone();
    let width = width(problem, effort);
    let moves = vec![Move { before: 0, placed: None }];
    let mut beam = Beam { states: vec![(state, 0)], moves, measure, slacks, totals, width };
    let mut seen = FxHashSet::default();
    loop {
        match beam.advance(&mut seen, effort) {
            Advance::Done(last) => {
                beam.trace(last, offsets);
                return Verdict::Found;
            }
            Advance::Stuck => return Verdict::Unknown,
            Advance::On => {}
        }
    }
}

/// The most states at once.
const WIDEST: u64 = 1 << 10;

/// How many states are kept, so that all tiles can be placed, and some room left free.
fn width(problem: &Problem, effort: &Effort) -> usize {
    let levels = 2 * problem.spans.len() as u64 + 1;
    (effort.left() / NODE / levels).clamp(4, WIDEST) as usize
}

/// What was done last, and the number of what was done before.
#[derive(Clone, Copy)]
struct Move {
    before: usize,
    placed: Option<(u32, usize)>,
}

/// A way to go on from a state.
struct Next {
    rank: f64,
    state: usize,
    option: usize,
    hash: u128,
}

enum Advance {
    /// Nothing is left after this move.
    Done(Move),
    /// No state is left, or no effort.
    Stuck,
    On,
}

struct Beam<'a> {
    /// States, and the number of their last moves.
    states: Vec<(State<'a>, usize)>,
    moves: Vec<Move>,
    measure: Measure,
    /// By section: how much may be left free, and what there was to place.
    slacks: Vec<usize>,
    totals: Vec<usize>,
    width: usize,
}

impl Beam<'_> {
    /// Goes one step further from all states, and keeps the best of what comes of it.
    fn advance(&mut self, seen: &mut FxHashSet<u128>, effort: &mut Effort) -> Advance {
        let (mut nexts, mut corners) = (Vec::new(), Vec::new());
        for state in 0..self.states.len() {
            if effort.spend(NODE).is_none() {
                return Advance::Stuck;
            }
            let corner = corner(&self.states[state].0);
            if let Some(last) = self.ways(state, &corner, &mut nexts) {
                return Advance::Done(last);
            }
            corners.push(corner);
        }
        nexts.sort_by(|a, b| a.rank.total_cmp(&b.rank));
        nexts.retain(|next| seen.insert(next.hash));
        nexts.truncate(self.width);
        self.follow(&nexts, &corners);
        if nexts.is_empty() { Advance::Stuck } else { Advance::On }
    }

    /// Adds the ways to go on from a state; the one that leaves nothing, if there is one.
    fn ways(&mut self, number: usize, corner: &Corner, nexts: &mut Vec<Next>) -> Option<Move> {
        for option in 0..corner.ways() {
            let (state, before) = &mut self.states[number];
            let mark = state.mark();
            if make(state, corner, option) {
                if state.is_done() {
                    return Some(moved(*before, corner, option));
                }
                let (whole, state) = (0..state.problem.sections, &self.states[number].0);
                let (rank, hash) = (self.rank(state), state.hash(&whole));
                nexts.push(Next { rank, state: number, option, hash });
            }
            self.states[number].0.undo(mark);
        }
        None
    }

    /// Makes the moves that are kept.
    fn follow(&mut self, nexts: &[Next], corners: &[Corner]) {
        let mut states = Vec::with_capacity(nexts.len());
        for next in nexts {
            let (state, before) = &self.states[next.state];
            let (mut state, before) = (state.clone(), *before);
            make(&mut state, &corners[next.state], next.option);
            state.settle_down();
            self.moves.push(moved(before, &corners[next.state], next.option));
            states.push((state, self.moves.len() - 1));
        }
        self.states = states;
    }

    /// The less, the better.
    fn rank(&self, state: &State) -> f64 {
        let share = |section: usize| {
            let placed = self.totals[section] - state.rests[section];
            let free = state.floors[section] - placed;
            free as f64 / (self.slacks[section] + 1) as f64
        };
        let open = (0..self.totals.len()).filter(|&section| state.floors[section] != NONE);
        match self.measure {
            Measure::Bytes => state.taken() as f64,
            Measure::Share => open.map(share).sum(),
        }
    }

    /// Sets the offsets of all tiles that were placed up to a move.
    fn trace(&self, last: Move, offsets: &mut [usize]) {
        let first = |step: &Move| step.before == 0 && step.placed.is_none();
        let before = |step: &Move| (!first(step)).then(|| self.moves[step.before]);
        for step in std::iter::successors(Some(last), before) {
            if let Some((tile, offset)) = step.placed {
                offsets[tile as usize] = offset;
            }
        }
    }
}

/// The move after another one.
fn moved(before: usize, corner: &Corner, option: usize) -> Move {
    Move { before, placed: corner.tiles.get(option).map(|&tile| (tile, corner.floor)) }
}

/// Goes on at a corner; whether that may be.
fn make(state: &mut State, corner: &Corner, option: usize) -> bool {
    let whole: Range<usize> = 0..state.problem.sections;
    match (corner.tiles.get(option), corner.waste) {
        (Some(&tile), _) => state.place(tile, corner.floor, &whole),
        (None, Some(to)) => state.waste(corner.section(), to, &[], &whole),
        (None, None) => false,
    }
}

/// The corner with the fewest ways to go on, the lowest of several.
fn corner(state: &State) -> Corner {
    let whole = 0..state.problem.sections;
    let corners = skyline::corners(state, &whole);
    let best = corners.min_by_key(|corner| (corner.ways(), corner.floor));
    best.expect("a tile is left")
}
