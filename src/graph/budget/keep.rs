//! What a simulated run makes again though there is room to keep it: the simulation decides from
//! moment to moment, and does not know how full memory will be later.

use std::cmp::Reverse;
use std::ops::Range;

use smallvec::SmallVec;

use super::course::Course;
use super::simulate::Outcome;
use super::timeline::Timeline;

/// A run that keeps what it can within so many bytes, first what costs most time for its size.
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

/// What may be kept: from which turn to which, and how many bytes.
type Gap = (Range<usize>, usize);

impl Timeline<'_> {
    /// The turns that run again, each with its number among them: first those that take most time
    /// for what they make.
    fn repeats(&self) -> Vec<(usize, usize)> {
        let turns = self.turns.iter().enumerate();
        let again = turns.filter_map(|(turn, known)| Some((turn, known.again?)));
        let mut found: Vec<_> = again.collect();
        found.sort_by_cached_key(|&(turn, _)| {
            let made: usize =
                self.turns[turn].makes.clone().map(|version| self.size(version)).sum();
            let time = self.course.steps[self.turns[turn].step].time;
            Reverse((time / made.max(1) as f64).to_bits()) // of numbers of at least zero, in order
        });
        found
    }

    /// Keeps what a turn makes again from its last use on, if that fits.
    fn keeps(&mut self, turn: usize, limit: usize) -> bool {
        let limit = limit as isize;
        let gaps = self.turns[turn].makes.clone().filter_map(|version| self.gap(version));
        let gaps: SmallVec<[Gap; 2]> = gaps.collect();
        // Most fail by themselves, before anything is changed.
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

    /// The turns from the last use of the version before to this one, and the bytes to keep.
    fn gap(&self, version: usize) -> Option<Gap> {
        let known = &self.versions[version];
        let before = known.before.filter(|_| known.uses.len() > 1)?;
        Some((self.taken(before)..known.uses[0], self.size(version)))
    }

    /// A turn does not run: what it makes are the versions from before.
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

    /// A turn does not read a version any more.
    fn unread(&mut self, version: usize, turn: usize) {
        let end = self.taken(version);
        self.versions[version].uses.retain(|user| *user != turn);
        let now = self.taken(version).min(end);
        self.shrink(now..end, self.size(version));
    }

    /// Who reads a version reads the one before it, which is kept until then.
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
