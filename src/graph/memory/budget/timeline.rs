//! A run including its recomputations: which step uses what, and how many bytes are live meanwhile.

use std::ops::Range;

use smallvec::SmallVec;

use super::course::Course;
use super::levels::Levels;
use crate::graph::draft::Again;
use crate::packing::{self, Lifetime};

/// One execution of a step, the first or a repetition.
pub(super) struct Turn {
    pub step: usize,
    /// Its number among the repetitions, if it is one.
    pub again: Option<usize>,
    /// The versions that it reads, as a range of [`Timeline::reads`].
    pub reads: Range<usize>,
    /// The versions that it makes.
    pub makes: Range<usize>,
}

/// A block from when it is computed, or recomputed, until it is dropped.
pub(super) struct Version {
    pub block: u32,
    /// The turns that use it; the first one makes it.
    pub uses: SmallVec<[usize; 4]>,
    /// The version that it replaces, if it is a recomputation.
    pub before: Option<usize>,
    /// The version that replaces it, if it is recomputed.
    pub after: Option<usize>,
}

impl Version {
    /// The last turn that needs it.
    pub(super) fn end(&self) -> usize {
        self.uses[self.uses.len() - 1]
    }
}

pub(super) struct Timeline<'a> {
    pub course: &'a Course,
    pub turns: Vec<Turn>,
    pub versions: Vec<Version>,
    /// The versions that turns read.
    pub reads: Vec<usize>,
    /// The bytes that are live during each turn.
    pub live: Levels,
}

impl<'a> Timeline<'a> {
    /// The timeline of a run with these repetitions, which are in order.
    pub(super) fn new(course: &'a Course, again: &[Again]) -> Self {
        let most = course.steps.len() + again.len();
        let (turns, live) = (Vec::with_capacity(most), Levels::new([].into_iter()));
        let (versions, reads) = (Vec::with_capacity(2 * most), Vec::with_capacity(4 * most));
        let mut line = Timeline { course, turns, versions, reads, live };
        let mut latest = vec![None; course.blocks.len()];
        let mut repeats = again.iter().enumerate().peekable();
        for (i, step) in course.steps.iter().enumerate() {
            while let Some((n, again)) = repeats.next_if(|(_, again)| again.before <= step.number) {
                let names = |block| again.blocks.contains(&block);
                line.push(course.index(again.maker), Some(n), names, &mut latest);
            }
            line.push(i, None, |_| true, &mut latest);
        }
        line.live = line.levels();
        line
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
        let known = &course.steps[step];
        let first = self.reads.len();
        for &block in &known.reads {
            let version = latest[block as usize].expect("it was made before");
            self.versions[version].uses.push(turn);
            self.reads.push(version);
        }
        let reads = first..self.reads.len();
        let makes = self.versions.len()..self.versions.len() + known.makes.len();
        for (version, &block) in makes.clone().zip(&known.makes) {
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
        let scratch = self.turns.iter().map(|turn| self.course.steps[turn.step].scratch);
        Levels::new(live.zip(scratch).map(|(live, scratch)| live + scratch))
    }

    /// The most bytes that are live at once.
    pub(super) fn peak(&self) -> usize {
        self.live.most()
    }

    /// The turn from which on a version's memory belongs to another version, or is free.
    pub(super) fn taken(&self, version: usize) -> usize {
        let known = &self.versions[version];
        let end = known.end();
        let takes = &self.course.steps[self.turns[end].step].takes;
        let is_taken = end > known.uses[0] && takes.contains(&known.block);
        if is_taken { end } else { end + 1 }
    }

    /// The size of a version in bytes.
    pub(super) fn size(&self, version: usize) -> usize {
        self.course.blocks[self.versions[version].block as usize].size
    }

    /// Adds `bytes` to the live bytes of these turns.
    pub(super) fn grow(&mut self, turns: Range<usize>, bytes: usize) {
        self.live.change(turns, bytes as isize);
    }

    /// Subtracts `bytes` from the live bytes of these turns.
    pub(super) fn shrink(&mut self, turns: Range<usize>, bytes: usize) {
        self.live.change(turns, -(bytes as isize));
    }
}
