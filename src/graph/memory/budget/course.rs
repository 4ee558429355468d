//! A run as the simulation sees it: temporary blocks, when they are used, and which of them may be
//! recomputed.

use smallvec::SmallVec;

use super::simulate::Outcome;
use super::timeline::Timeline;
use crate::device::ALIGNMENT;
use crate::graph::cost::nanoseconds;
use crate::graph::draft::{Again, Draft};
use crate::graph::liveness::temporaries;
use crate::graph::{Kernels, Op, Place, liveness};

/// An operation.
pub(super) struct Step {
    /// Its number in the draft.
    pub number: usize,
    /// An estimate of its time.
    pub time: f64,
    /// Bytes of its scratch.
    pub scratch: usize,
    /// The temporary blocks that have to be in memory when it begins.
    pub reads: SmallVec<[u32; 4]>,
    /// The temporary blocks that it is the first to use.
    pub makes: SmallVec<[u32; 2]>,
    /// The temporary blocks that end here and whose memory an output takes over in place.
    pub takes: SmallVec<[u32; 2]>,
    /// The bytes of all its outputs, should it be rerun.
    pub results: usize,
}

/// A block.
#[derive(Clone, Default)]
pub(super) struct Block {
    /// Its size in the arena; 0 if it is outside the arena.
    pub size: usize,
    /// The steps that use it.
    pub uses: Vec<usize>,
    /// The step that makes it, if it may be rerun for as long as the block is used.
    pub maker: Option<usize>,
    /// The last step before which it may be recomputed.
    pub until: usize,
    /// The blocks that are made from it and may be recomputed.
    pub results: Vec<u32>,
}

pub(super) struct Course {
    pub steps: Vec<Step>,
    pub blocks: Vec<Block>,
    /// The time at which each step begins, and finally that at which the last one ends.
    pub clock: Vec<f64>,
}

impl Course {
    pub(super) fn new(draft: &Draft, kernels: &Kernels) -> Course {
        let mut blocks = vec![Block::default(); draft.blocks()];
        let mut steps = Vec::new();
        for (number, recorded) in draft.steps() {
            let named = temporaries(recorded.places(), draft.roles());
            for &block in &named {
                let known = &mut blocks[block as usize];
                known.size = draft.size(block);
                known.uses.push(steps.len());
            }
            let is_new = |&block: &u32| blocks[block as usize].uses.len() == 1;
            let makes = named.iter().copied().filter(is_new).collect();
            let reads = named.iter().copied().filter(|block| !is_new(block)).collect();
            let (time, scratch) = (nanoseconds(&recorded.call), kernels.scratch(recorded));
            let scratch = scratch.next_multiple_of(ALIGNMENT);
            let results = recorded.outputs.iter().map(|place| draft.size(place.block)).sum();
            let takes = SmallVec::new();
            steps.push(Step { number, time, scratch, reads, makes, takes, results });
        }
        let mut course = Course { clock: clock(&steps), steps, blocks };
        course.share(draft);
        course.find_makers(draft);
        course
    }

    /// The run with these recomputations.
    pub(super) fn outcome(&self, again: Vec<Again>) -> Outcome {
        let time = |again: &Again| self.steps[self.index(again.maker)].time;
        let more: f64 = again.iter().map(time).sum();
        let memory = Timeline::new(self, &again).peak();
        Outcome { time: self.clock[self.steps.len()] + more, again, memory }
    }

    /// The index of the step with this number in the draft.
    pub(super) fn index(&self, number: usize) -> usize {
        let found = self.steps.binary_search_by_key(&number, |step| step.number);
        found.expect("makers and those before which they run stay")
    }

    /// The most bytes that any single step needs.
    pub(super) fn least(&self) -> usize {
        let sum = |blocks: &[u32]| -> usize {
            blocks.iter().map(|&block| self.blocks[block as usize].size).sum()
        };
        let needed = |step: &Step| {
            (sum(&step.reads) + sum(&step.makes) + step.scratch).saturating_sub(sum(&step.takes))
        };
        self.steps.iter().map(needed).max().unwrap_or(0)
    }

    /// Fills in the blocks whose memory is taken in place.
    fn share(&mut self, draft: &Draft) {
        for (i, step) in self.steps.iter_mut().enumerate() {
            let recorded = draft.step(step.number).expect("it has the draft's number");
            let uses = |place: &Place| &self.blocks[place.block as usize].uses;
            let pairs = liveness::pairs(recorded, |from, to| {
                let meets = uses(from).last() == Some(&i) && uses(to).first() == Some(&i);
                meets && draft.is_whole(from) && draft.is_whole(to)
            });
            step.takes = pairs.into_iter().map(|(from, _)| from).collect();
        }
    }

    /// Determines which blocks may be recomputed, and until when.
    fn find_makers(&mut self, draft: &Draft) {
        let indices: Vec<usize> = self.steps.iter().map(|step| step.number).collect();
        for i in 0..self.steps.len() {
            let number = self.steps[i].number;
            let recorded = draft.step(number).expect("it has the draft's number");
            if !may_run_again(draft, number, recorded) {
                continue;
            }
            let lasts = recorded.inputs.iter().map(|place| self.lasts(draft, &indices, i, place));
            let until = lasts.min().unwrap_or(self.steps.len());
            for &block in &self.steps[i].makes {
                let made = &mut self.blocks[block as usize];
                if made.uses.last().is_some_and(|&last| last <= until) {
                    (made.maker, made.until) = (Some(i), until);
                    let reads = self.steps[i].reads.iter();
                    reads.for_each(|&from| self.blocks[from as usize].results.push(block));
                }
            }
        }
    }

    /// The last step before which an input of step `i` still has the value that `i` has read.
    fn lasts(&self, draft: &Draft, indices: &[usize], i: usize, place: &Place) -> usize {
        let block = &self.blocks[place.block as usize];
        if block.maker.is_some() {
            return block.until;
        }
        let written = draft.written_after(place.block, indices[i]);
        let written = written.map_or(indices.len(), |n| indices.partition_point(|&m| m < n));
        // A block that cannot be recomputed stays in memory as long as it is used.
        block.uses.last().map_or(written, |&last| last.min(written))
    }
}

/// Whether a step does nothing but write whole blocks, as their only writer. Random numbers are a
/// function of its inputs, so they do not prevent this.
fn may_run_again(draft: &Draft, number: usize, step: &Op) -> bool {
    let effects = step.call.effects;
    let is_made = |place: &Place| draft.maker(place) == Some(number) && draft.is_whole(place);
    effects.state.is_empty() && !effects.host && step.outputs.iter().all(is_made)
}

fn clock(steps: &[Step]) -> Vec<f64> {
    let ends = steps.iter().scan(0.0, |now, step| {
        *now += step.time;
        Some(*now)
    });
    std::iter::once(0.0).chain(ends).collect()
}
