//! Packings without gaps (tilings), found by a sweep over time.
//!
//! Where nothing is ever free, the pieces that end at a moment leave holes that the pieces that
//! begin fill exactly. The pieces that leave a hole and those that fill it form a group; both are
//! adjacent in memory. So a packing is a planar graph with groups as nodes and pieces as edges,
//! from the group in which a piece begins to the one in which it ends. A PQ-tree of the possible
//! orders of the live pieces, updated group by group, decides whether there is a packing (Lempel,
//! Even and Cederbaum, "An algorithm for planarity testing of graphs", 1967). All of that is quick;
//! what has to be searched for is the groups, where several of them share a moment.

use super::effort::Effort;
use super::groups::{self, Group, Groups};
use super::pq_tree::Tree;
use crate::packing::random::Random;

/// A piece of a packing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Tile {
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) size: usize,
}

impl Tile {
    /// The moments at which it is live.
    pub(super) fn range(&self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// How many partitions are tried at a moment.
const MOST_WAYS: usize = 8;

/// Offsets of tiles that fill the same height at all times from the first start to the last end;
/// None if none are found with this effort.
pub(super) fn tile(tiles: &[Tile], seed: u64, effort: &mut Effort) -> Option<Vec<usize>> {
    let sizes: Vec<usize> = tiles.iter().map(|tile| tile.size).collect();
    let mut events = events(tiles);
    let first = events.remove(0).begun;
    events.pop();
    let moments: Vec<_> = events.iter().map(|group| groups::ways(group, &sizes)).collect();
    let (states, skips) = (vec![State::new(&first)], vec![0; moments.len()]);
    let mut sweep = Sweep { moments, states, skips, random: Random::new(seed) };
    sweep.repair(effort)?;
    Some(sweep.offsets(&first, &sizes))
}

/// The moments at which tiles begin or end, in order.
pub(super) fn moments(tiles: &[Tile]) -> Vec<u32> {
    let mut moments: Vec<u32> = tiles.iter().flat_map(|tile| [tile.start, tile.end]).collect();
    moments.sort_unstable();
    moments.dedup();
    moments
}

/// By moment: the pieces that end and those that begin.
fn events(tiles: &[Tile]) -> Vec<Group> {
    let moments = moments(tiles);
    let mut events = vec![Group { ended: Vec::new(), begun: Vec::new() }; moments.len()];
    for (number, tile) in (0u32..).zip(tiles) {
        let at = |moment| moments.partition_point(|&other| other < moment);
        events[at(tile.start)].begun.push(number);
        events[at(tile.end)].ended.push(number);
    }
    events
}

/// The orders of live pieces that are possible at a moment.
#[derive(Clone)]
struct State {
    tree: Tree,
    /// The groups of the moment before, each with the orders that preceded it.
    groups: Vec<(Tree, Group)>,
}

impl State {
    fn new(first: &[u32]) -> State {
        State { tree: Tree::any(first), groups: Vec::new() }
    }

    /// The orders after some groups.
    fn after(&self, groups: &Groups) -> Option<State> {
        let mut next = State { tree: self.tree.clone(), groups: Vec::new() };
        for group in groups {
            let before = next.tree.clone();
            next.tree = next.tree.replace(&group.ended, Tree::any(&group.begun))?;
            next.groups.push((before, group.clone()));
        }
        Some(next)
    }
}

struct Sweep {
    /// By moment: the partitions into groups, likely ones first.
    moments: Vec<Vec<Groups>>,
    /// The orders before each moment so far.
    states: Vec<State>,
    /// By moment: how many of the feasible partitions to skip.
    skips: Vec<usize>,
    random: Random,
}

/// Another partition at a moment, and how far it leads.
#[derive(Clone, Copy)]
struct Change {
    reached: usize,
    at: usize,
    skip: usize,
}

impl Sweep {
    /// The orders after a moment, from those before it.
    fn next(&self, at: usize, state: &State, skip: usize) -> Option<State> {
        self.moments[at].iter().filter_map(|way| state.after(way)).nth(skip)
    }

    /// Continues from a moment as far as possible; returns the moment reached.
    fn run(&mut self, from: usize) -> usize {
        self.states.truncate(from + 1);
        for at in from..self.moments.len() {
            match self.next(at, &self.states[at], self.skips[at]) {
                Some(next) => self.states.push(next),
                None => return at,
            }
        }
        self.moments.len()
    }

    /// How far another partition would lead.
    fn probe(&self, at: usize, skip: usize) -> Option<Change> {
        let mut state = self.next(at, &self.states[at], skip)?;
        let mut reached = at + 1;
        while reached < self.moments.len()
            && let Some(next) = self.next(reached, &state, self.skips[reached])
        {
            (state, reached) = (next, reached + 1);
        }
        Some(Change { reached, at, skip })
    }

    fn make(&mut self, change: Change) -> usize {
        self.skips[change.at] = change.skip;
        self.run(change.at)
    }

    /// Changes the partition at one moment at a time, choosing the change that leads furthest; if
    /// none leads further, makes random changes.
    fn repair(&mut self, effort: &mut Effort) -> Option<()> {
        let mut reached = self.run(0);
        let mut best = (reached, self.skips.clone());
        while reached < self.moments.len() {
            match self.furthest(reached, effort)? {
                Some(change) if change.reached > reached => reached = self.make(change),
                _ => {
                    if reached < best.0 {
                        self.skips.clone_from(&best.1);
                    }
                    effort.spend(self.moments.len() as u64)?;
                    reached = self.disturb(reached);
                }
            }
            if reached >= best.0 {
                best = (reached, self.skips.clone());
            }
        }
        Some(())
    }

    /// The change that leads furthest, if any leads further; the outer None means that the effort
    /// is spent.
    fn furthest(&self, reached: usize, effort: &mut Effort) -> Option<Option<Change>> {
        let mut best: Option<Change> = None;
        for at in (0..self.states.len()).rev() {
            let skips = 0..self.moments[at].len().min(MOST_WAYS);
            for skip in skips.filter(|&skip| skip != self.skips[at]) {
                effort.spend(self.moments.len() as u64)?;
                let Some(change) = self.probe(at, skip) else { break };
                if change.reached > best.map_or(reached, |best| best.reached) {
                    best = Some(change);
                }
            }
        }
        Some(best)
    }

    /// Takes a random partition at one or two of the moments reached so far.
    fn disturb(&mut self, reached: usize) -> usize {
        let open: Vec<usize> = (0..=reached).filter(|&at| self.moments[at].len() > 1).collect();
        for _ in 0..1 + self.random.below(2) {
            if let Some(&at) = open.get(self.random.below(open.len().max(1))) {
                self.skips[at] = self.random.below(self.moments[at].len().min(MOST_WAYS));
            }
        }
        self.run(0)
    }

    /// The offsets, found by going back in time from some order at the end.
    fn offsets(mut self, first: &[u32], sizes: &[usize]) -> Vec<usize> {
        let mut offsets = vec![0; sizes.len()];
        let mut order = Vec::new();
        let Some(last) = self.states.last() else { return offsets };
        last.tree.leaves(&mut order);
        let mut ranks = vec![0; sizes.len()];
        for (mut before, group) in
            self.states.drain(..).rev().flat_map(|state| state.groups.into_iter().rev())
        {
            settle(&order, &group.begun, sizes, &mut offsets);
            order.iter().zip(0u32..).for_each(|(&piece, rank)| ranks[piece as usize] = rank);
            let place = group.begun.iter().map(|&piece| ranks[piece as usize]).min();
            group.ended.iter().for_each(|&p| ranks[p as usize] = place.unwrap_or_default());
            before.arrange(&ranks);
            order.clear();
            before.leaves(&mut order);
        }
        settle(&order, first, sizes, &mut offsets);
        offsets
    }
}

/// Sets the offsets of the pieces in `some` from an order of all live pieces.
fn settle(order: &[u32], some: &[u32], sizes: &[usize], offsets: &mut [usize]) {
    let mut below = 0;
    for &piece in order {
        if some.contains(&piece) {
            offsets[piece as usize] = below;
        }
        below += sizes[piece as usize];
    }
}
