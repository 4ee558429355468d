//! A run including its recomputations: which step uses what, and how many bytes are live meanwhile.
//! Those recomputations for which there is room after all are undone: the simulation decides step by
//! step and does not know how full memory will be later.

use std::cmp::Reverse;
use std::ops::Range;

use smallvec::SmallVec;

use super::levels::Levels;
use super::simulate::Outcome;
use super::{Again, Course};
use crate::packing::{self, Lifetime};

/// One execution of a step, the first or a repetition.
struct Turn {
    step: usize,
    /// Its number among the repetitions, if it is one.
    again: Option<usize>,
    /// The versions that it reads, as a range of [`Turns::reads`].
    reads: Range<usize>,
    /// The versions that it makes.
    makes: Range<usize>,
}

/// A block from when it is computed, or recomputed, until it is dropped.
struct Version {
    block: u32,
    /// The turns that use it; the first one makes it.
    uses: SmallVec<[usize; 4]>,
    /// The version that it replaces, if it is a recomputation.
    before: Option<usize>,
    /// The version that replaces it, if it is recomputed.
    after: Option<usize>,
}

impl Version {
    /// The last turn that needs it.
    fn end(&self) -> usize {
        self.uses[self.uses.len() - 1]
    }
}

pub(in crate::graph::memory) struct Turns<'a> {
    course: &'a Course,
    turns: Vec<Turn>,
    versions: Vec<Version>,
    /// The versions that turns read.
    reads: Vec<usize>,
    /// The bytes that are live during each turn.
    live: Levels,
}

impl<'a> Turns<'a> {
    /// A run with these repetitions, which are in order.
    pub(in crate::graph::memory) fn new(course: &'a Course, again: &[Again]) -> Self {
        let most = course.steps() + again.len();
        let (turns, live) = (Vec::with_capacity(most), Levels::new([].into_iter()));
        let (versions, reads) = (Vec::with_capacity(2 * most), Vec::with_capacity(4 * most));
        let mut run = Turns { course, turns, versions, reads, live };
        let mut latest = vec![None; course.blocks()];
        let mut repeats = again.iter().enumerate().peekable();
        for i in 0..course.steps() {
            while let Some((n, again)) = repeats.next_if(|(_, again)| again.before <= i) {
                let names = |block| again.blocks.contains(&block);
                run.push(again.maker, Some(n), names, &mut latest);
            }
            run.push(i, None, |_| true, &mut latest);
        }
        run.live = run.levels();
        run
    }

    /// Adds a turn; `names` tells which of the blocks that it makes are read after it.
    fn push(
        &mut self,
        step: usize,
        again: Option<usize>,
        names: impl Fn(u32) -> bool,
        latest: &mut [Option<usize>],
    ) {
        let (course, turn) = (self.course, self.turns.len());
        let made = course.line.makes.row(step);
        let first = self.reads.len();
        for &block in course.line.reads.row(step) {
            let version = latest[block as usize].expect("it was made before");
            self.versions[version].uses.push(turn);
            self.reads.push(version);
        }
        let reads = first..self.reads.len();
        let makes = self.versions.len()..self.versions.len() + made.len();
        for (version, &block) in makes.clone().zip(made) {
            let mut before = None;
            if names(block) {
                before = latest[block as usize].replace(version);
            }
            before.into_iter().for_each(|n: usize| self.versions[n].after = Some(version));
            self.versions.push(Version { block, uses: [turn][..].into(), before, after: None });
        }
        self.turns.push(Turn { step, again, reads, makes });
    }

    fn levels(&self) -> Levels {
        let life = |version: usize| Lifetime {
            first: self.versions[version].uses[0] as u32,
            last: self.taken(version) as u32 - 1,
        };
        let pieces = (0..self.versions.len()).map(|version| (life(version), self.size(version)));
        let live = packing::curve(self.turns.len(), pieces).into_iter();
        let scratch = self.turns.iter().map(|turn| self.course.line.scratch[turn.step]);
        Levels::new(live.zip(scratch).map(|(live, scratch)| live + scratch))
    }

    /// The most bytes that are live at once.
    pub(in crate::graph::memory) fn peak(&self) -> usize {
        self.live.most()
    }

    /// The turn from which on a version's memory belongs to another version, or is free.
    fn taken(&self, version: usize) -> usize {
        let known = &self.versions[version];
        let end = known.end();
        let mut takes = self.course.line.takes.row(self.turns[end].step).iter();
        let is_taken = end > known.uses[0] && takes.any(|pair| pair.0 == known.block);
        if is_taken { end } else { end + 1 }
    }

    /// The size of a version in bytes.
    fn size(&self, version: usize) -> usize {
        self.course.size(self.versions[version].block)
    }

    /// Adds `bytes` to the live bytes of these turns.
    fn grow(&mut self, turns: Range<usize>, bytes: usize) {
        self.live.change(turns, bytes as isize);
    }

    /// Subtracts `bytes` from the live bytes of these turns.
    fn shrink(&mut self, turns: Range<usize>, bytes: usize) {
        self.live.change(turns, -(bytes as isize));
    }
}

/// The run with these recomputations.
pub(in crate::graph::memory) fn outcome(course: &Course, again: Vec<Again>) -> Outcome {
    let more: f64 = again.iter().map(|again| course.times[again.maker]).sum();
    let memory = Turns::new(course, &again).peak();
    Outcome { time: course.clock[course.steps()] + more, again, memory }
}

/// The run that results from keeping what fits within `limit` bytes, the costliest per byte first.
pub(in crate::graph::memory) fn keep(course: &Course, outcome: &Outcome, limit: usize) -> Outcome {
    let mut run = Turns::new(course, &outcome.again);
    let (mut repeats, mut time) = (run.repeats(), outcome.time);
    loop {
        let before = repeats.len();
        repeats.retain(|&(turn, _)| {
            let keeps = run.keeps(turn, limit);
            if keeps {
                run.leave_out(turn);
                time -= course.times[run.turns[turn].step];
            }
            !keeps
        });
        if repeats.len() == before {
            break;
        }
    }
    repeats.sort_unstable();
    let again = repeats.iter().map(|&(_, again)| outcome.again[again].clone()).collect();
    Outcome { again, time, memory: run.peak() }
}

/// Turns over which a block may be kept, and its bytes.
type Gap = (Range<usize>, usize);

impl Turns<'_> {
    /// The turns that are repetitions, each with its number among them: those that take most time
    /// per byte of their results first.
    fn repeats(&self) -> Vec<(usize, usize)> {
        let turns = self.turns.iter().enumerate();
        let again = turns.filter_map(|(turn, known)| Some((turn, known.again?)));
        let mut found: Vec<_> = again.collect();
        found.sort_by_cached_key(|&(turn, _)| {
            let made: usize =
                self.turns[turn].makes.clone().map(|version| self.size(version)).sum();
            let time = self.course.times[self.turns[turn].step];
            Reverse((time / made.max(1) as f64).to_bits()) // bits order non-negative floats
        });
        found
    }

    /// Keeps what a turn recomputes alive from its previous use on, if that fits.
    fn keeps(&mut self, turn: usize, limit: usize) -> bool {
        let limit = limit as isize;
        let gaps = self.turns[turn].makes.clone().filter_map(|version| self.gap(version));
        let gaps: SmallVec<[Gap; 2]> = gaps.collect();
        // Most gaps do not fit even on their own: check before changing anything.
        let live = &mut self.live;
        if !gaps.iter().all(|(gap, bytes)| live.keep_to(limit - *bytes as isize, gap.clone())) {
            return false;
        }
        gaps.iter().for_each(|(gap, bytes)| self.grow(gap.clone(), *bytes));
        let live = &mut self.live;
        let fits = gaps.len() < 2 || gaps.iter().all(|(gap, _)| live.keep_to(limit, gap.clone()));
        if !fits {
            gaps.into_iter().for_each(|(gap, bytes)| self.shrink(gap, bytes));
        }
        fits
    }

    /// The turns from the last use of the previous version to this one, and the bytes to keep.
    fn gap(&self, version: usize) -> Option<Gap> {
        let known = &self.versions[version];
        let before = known.before.filter(|_| known.uses.len() > 1)?;
        Some((self.taken(before)..known.uses[0], self.size(version)))
    }

    /// Removes a turn: the previous versions of what it makes take the place of the new ones.
    fn leave_out(&mut self, turn: usize) {
        let scratch = self.course.line.scratch[self.turns[turn].step];
        self.shrink(turn..turn + 1, scratch);
        for read in std::mem::take(&mut self.turns[turn].reads) {
            self.unread(self.reads[read], turn);
        }
        for version in self.turns[turn].makes.clone() {
            self.merge(version, turn);
        }
    }

    /// Removes a turn from the readers of a version.
    fn unread(&mut self, version: usize, turn: usize) {
        let end = self.taken(version);
        self.versions[version].uses.retain(|user| *user != turn);
        let now = self.taken(version).min(end);
        self.shrink(now..end, self.size(version));
    }

    /// Lets the readers of a version read the previous one, which is kept until then.
    fn merge(&mut self, version: usize, turn: usize) {
        let known = &mut self.versions[version];
        let uses: SmallVec<[usize; 4]> = known.uses.drain(1..).collect();
        let (before, after) = (known.before, known.after);
        if uses.is_empty() {
            self.shrink(turn..turn + 1, self.size(version));
        }
        let Some(before) = before else { return };
        for &user in &uses {
            let reads = self.reads[self.turns[user].reads.clone()].iter_mut();
            reads.filter(|read| **read == version).for_each(|read| *read = before);
        }
        self.versions[before].uses.extend(uses);
        self.versions[before].after = after;
        after.into_iter().for_each(|n| self.versions[n].before = Some(before));
    }
}
