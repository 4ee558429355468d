//! Undoes recomputations of a simulated run for which there is room after all: the simulation
//! decides step by step and does not know how full memory will be later.

use std::cmp::Reverse;
use std::ops::Range;

use smallvec::SmallVec;

use super::course::Course;
use super::simulate::Outcome;
use super::timeline::Timeline;

/// The run that results from keeping what fits within `limit` bytes, the costliest per byte first.
pub(super) fn keep(course: &Course, outcome: &Outcome, limit: usize) -> Outcome {
    let mut line = Timeline::new(course, &outcome.again);
    let (mut repeats, mut time) = (line.repeats(), outcome.time);
    loop {
        let before = repeats.len();
        repeats.retain(|&(turn, _)| {
            let keeps = line.keeps(turn, limit);
            if keeps {
                line.leave_out(turn);
                time -= course.steps[line.turns[turn].step].time;
            }
            !keeps
        });
        if repeats.len() == before {
            break;
        }
    }
    repeats.sort_unstable();
    let again = repeats.iter().map(|&(_, again)| outcome.again[again].clone()).collect();
    Outcome { again, time, memory: line.peak() }
}

/// Turns over which a block may be kept, and its bytes.
type Gap = (Range<usize>, usize);

impl Timeline<'_> {
    /// The turns that are repetitions, each with its number among them: those that take most time
    /// per byte of their results first.
    fn repeats(&self) -> Vec<(usize, usize)> {
        let turns = self.turns.iter().enumerate();
        let again = turns.filter_map(|(turn, known)| Some((turn, known.again?)));
        let mut found: Vec<_> = again.collect();
        found.sort_by_cached_key(|&(turn, _)| {
            let made: usize =
                self.turns[turn].makes.clone().map(|version| self.size(version)).sum();
            let time = self.course.steps[self.turns[turn].step].time;
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
        let scratch = self.course.steps[self.turns[turn].step].scratch;
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
