//! What a simulated run makes again though there is room to keep it: the simulation decides from
//! moment to moment, and does not know how full memory will be later.

use std::cmp::Reverse;
use std::ops::Range;

use super::course::Course;
use super::simulate::Outcome;
use super::timeline::Timeline;
use crate::graph::draft::Again;

/// A run that keeps what it can within so many bytes, first what costs most time for its size.
pub(super) fn keep(course: &Course, outcome: &Outcome, limit: usize) -> Outcome {
    let mut line = Timeline::new(course, &outcome.again);
    let mut is_dropped = vec![true; outcome.again.len()];
    let mut time = outcome.time;
    loop {
        let mut kept = false;
        for (turn, again) in line.repeats(&is_dropped) {
            if line.keeps(turn, limit) {
                line.leave_out(turn);
                (is_dropped[again], kept) = (false, true);
                time -= course.steps[line.turns[turn].step].time;
            }
        }
        if !kept {
            break;
        }
    }
    let still = outcome.again.iter().zip(is_dropped).filter(|&(_, dropped)| dropped);
    let again: Vec<Again> = still.map(|(again, _)| again.clone()).collect();
    Outcome { again, time, memory: line.peak() }
}

impl Timeline<'_> {
    /// The turns that still run again, and which they are: first those that take most time for what
    /// they make.
    fn repeats(&self, is_dropped: &[bool]) -> Vec<(usize, usize)> {
        let turns = self.turns.iter().enumerate();
        let again = turns.filter_map(|(turn, known)| Some((turn, known.again?)));
        let mut found: Vec<_> = again.filter(|&(_, again)| is_dropped[again]).collect();
        found.sort_by_cached_key(|&(turn, _)| {
            let made: usize =
                self.turns[turn].makes.iter().map(|&version| self.size(version)).sum();
            let time = self.course.steps[self.turns[turn].step].time;
            Reverse((time / made.max(1) as f64).to_bits()) // of numbers of at least zero, in order
        });
        found
    }

    /// Keeps what a turn makes again from its last use on, if that fits.
    fn keeps(&mut self, turn: usize, limit: usize) -> bool {
        let gaps: Vec<_> = self.turns[turn].makes.iter().filter_map(|&v| self.gap(v)).collect();
        gaps.iter().for_each(|(gap, bytes)| self.grow(gap.clone(), *bytes));
        let mut grown = gaps.iter().flat_map(|(gap, _)| &self.live[gap.clone()]);
        let fits = grown.all(|&live| live <= limit);
        if !fits {
            gaps.into_iter().for_each(|(gap, bytes)| self.shrink(gap, bytes));
        }
        fits
    }

    /// The turns from the last use of the version before to this one, and the bytes to keep.
    fn gap(&self, version: usize) -> Option<(Range<usize>, usize)> {
        let known = &self.versions[version];
        let before = known.before.filter(|_| known.uses.len() > 1)?;
        Some((self.taken(before)..known.uses[0], self.size(version)))
    }

    /// A turn does not run: what it makes are the versions from before.
    fn leave_out(&mut self, turn: usize) {
        let scratch = self.course.steps[self.turns[turn].step].scratch;
        self.shrink(turn..turn + 1, scratch);
        for version in std::mem::take(&mut self.turns[turn].reads) {
            self.unread(version, turn);
        }
        for version in self.turns[turn].makes.clone() {
            self.merge(version, turn);
        }
    }

    /// A turn does not read a version any more.
    fn unread(&mut self, version: usize, turn: usize) {
        let end = self.taken(version);
        self.versions[version].uses.retain(|&user| user != turn);
        let now = self.taken(version).min(end);
        self.shrink(now..end, self.size(version));
    }

    /// Who reads a version reads the one before it, which is kept until then.
    fn merge(&mut self, version: usize, turn: usize) {
        let known = &mut self.versions[version];
        let (uses, before, after) = (known.uses.split_off(1), known.before, known.after);
        if uses.is_empty() {
            self.shrink(turn..turn + 1, self.size(version));
        }
        let Some(before) = before else { return };
        for &user in &uses {
            let reads = self.turns[user].reads.iter_mut();
            reads.filter(|read| **read == version).for_each(|read| *read = before);
        }
        self.versions[before].uses.extend(uses);
        self.versions[before].after = after;
        after.into_iter().for_each(|n| self.versions[n].before = Some(before));
    }
}
