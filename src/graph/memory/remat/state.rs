//! Liveness of a draft's blocks, given the recomputations so far, and what may be dropped.

use crate::graph::cost::nanoseconds;
use crate::graph::draft::Draft;
use crate::graph::liveness;
use crate::graph::{Kernels, Role};
use crate::ops::Effects;
use crate::packing::{self, Lifetime};

/// The steps that use a block from when it is computed, or recomputed, until it is dropped.
type Segment = Vec<usize>;

/// A block that can be dropped and recomputed.
pub(super) struct Candidate {
    /// The step that makes the block.
    pub maker: usize,
    pub block: u32,
    /// The step before which it is recomputed.
    pub before: usize,
    /// The last step that uses the block before it is dropped.
    last: usize,
    /// Blocks that have to be kept longer for it, each with the segment that grows.
    longer: Vec<(u32, usize)>,
    pub time: f64,
    /// The bytes that it frees at the peak per unit of time.
    score: f64,
}

/// A block with a single maker, which may be rerun.
struct Made {
    block: u32,
    maker: usize,
    /// An upper bound on the score of any candidate that frees the block.
    most: f64,
}

pub(super) struct State<'a> {
    draft: &'a Draft,
    kernels: &'a Kernels,
    /// The minimum number of bytes worth freeing.
    worth: usize,
    /// Blocks that may be recomputed and are worth it, in descending order of `most`. Ties go last
    /// first: a late block is needed again soonest, so keeping its inputs costs least.
    made: Vec<Made>,
    /// By block; empty for blocks outside the arena.
    segments: Vec<Vec<Segment>>,
    /// The bytes that are live during each step.
    live: Vec<usize>,
    /// The time of each step.
    pub times: Vec<f64>,
}

impl<'a> State<'a> {
    pub(super) fn new(draft: &'a Draft, kernels: &'a Kernels, worth: usize) -> Self {
        let mut segments = vec![Vec::new(); draft.blocks()];
        let mut times = vec![0.0; draft.numbers().len()];
        for (n, step) in draft.steps() {
            times[n] = nanoseconds(&step.call);
            for place in step.places().filter(|place| draft.role(place.block) == Role::Temporary) {
                let known: &mut Vec<Segment> = &mut segments[place.block as usize];
                match known.first_mut() {
                    Some(uses) if uses.last() == Some(&n) => {}
                    Some(uses) => uses.push(n),
                    None => known.push(vec![n]),
                }
            }
        }
        let (made, live) = (Vec::new(), Vec::new());
        let mut state = State { draft, kernels, worth, made, segments, live, times };
        (state.live, state.made) = (state.curve(), state.made());
        state
    }

    /// The bytes that are live during each step before anything is dropped. An output that shares
    /// the memory of an input in place is counted once with it.
    fn curve(&self) -> Vec<usize> {
        let blocks = (0u32..).zip(&self.segments);
        let pieces = blocks.filter_map(|(block, segments)| {
            let uses = segments.first()?;
            let life = Lifetime { first: uses[0] as u32, last: uses[uses.len() - 1] as u32 };
            Some((life, self.draft.size(block)))
        });
        let mut live = packing::curve(self.times.len(), pieces);
        for (n, step) in self.draft.steps() {
            let uses = |block: u32| self.segments[block as usize].first();
            let pairs = liveness::pairs(step, |from, to| {
                let ends = uses(from.block).and_then(|uses| uses.last()) == Some(&n);
                let begins = uses(to.block).and_then(|uses| uses.first()) == Some(&n);
                ends && begins && self.draft.is_whole(from) && self.draft.is_whole(to)
            });
            let shared: usize = pairs.iter().map(|&(_, to)| self.draft.size(to)).sum();
            live[n] = live[n] + self.kernels.scratch(step) - shared;
        }
        live
    }

    /// See the field of that name.
    fn made(&self) -> Vec<Made> {
        let blocks = (0..self.draft.blocks() as u32).map(|block| (block, self.draft.size(block)));
        let made = blocks.filter(|&(_, bytes)| bytes >= self.worth).filter_map(|(block, bytes)| {
            let maker = self.maker(block)?;
            Some(Made { block, maker, most: bytes as f64 / self.times[maker] })
        });
        let mut made: Vec<Made> = made.collect();
        made.sort_by(|a, b| b.most.total_cmp(&a.most).then(b.block.cmp(&a.block)));
        made
    }

    /// The step during which most bytes are live, and how many.
    pub(super) fn peak(&self) -> (usize, usize) {
        let steps = self.live.iter().copied().enumerate();
        steps.max_by_key(|&(n, bytes)| (bytes, std::cmp::Reverse(n))).unwrap_or((0, 0))
    }

    /// The candidate that frees most bytes at the peak for its time and takes at most `allowed`.
    pub(super) fn best(&self, allowed: f64) -> Option<Candidate> {
        let (peak, _) = self.peak();
        let mut best: Option<Candidate> = None;
        for made in self.made.iter().filter(|made| self.times[made.maker] <= allowed) {
            let score = best.as_ref().map_or(0.0, |best| best.score);
            if made.most <= score {
                break;
            }
            best = self.candidate(made, peak).filter(|found| found.score > score).or(best);
        }
        best
    }

    /// The candidate for dropping a block across the peak, if there is one.
    fn candidate(&self, made: &Made, peak: usize) -> Option<Candidate> {
        let &Made { block, maker, .. } = made;
        let (last, before) = self.segments[block as usize].iter().find_map(|uses| {
            let next = uses.partition_point(|&n| n <= peak);
            let last = *uses[..next].last()?;
            (last < peak).then_some((last, *uses.get(next)?))
        })?;
        let step = self.draft.step(maker)?;
        let mut longer = Vec::new();
        for place in &step.inputs {
            if !self.draft.holds(place, maker, before) {
                return None;
            }
            if longer.iter().all(|&(known, _)| known != place.block) {
                longer.extend(self.longer(place.block, before)?);
            }
        }
        let kept = longer.iter().filter(|&&(b, s)| self.end(b, s) < peak);
        let kept: usize = kept.map(|&(block, _)| self.draft.size(block)).sum();
        let freed =
            self.draft.size(block).checked_sub(kept).filter(|&freed| freed >= self.worth)?;
        let time = self.times[maker];
        Some(Candidate { maker, block, before, last, longer, time, score: freed as f64 / time })
    }

    /// The step that makes a block, if it is the only one, writes just that whole block, and
    /// depends only on its inputs.
    fn maker(&self, block: u32) -> Option<usize> {
        let first = *self.segments[block as usize].first()?.first()?;
        let step = self.draft.step(first)?;
        let [output] = &step.outputs[..] else { return None };
        let is_whole = output.block == block && self.draft.is_whole(output);
        let is_pure = step.call.effects == Effects::PURE;
        let is_alone = self.draft.maker(output) == Some(first)
            && step.inputs.iter().all(|input| input.block != block);
        (is_whole && is_pure && is_alone).then_some(first)
    }

    /// The segment of a block that has to last until a step. `Some(None)` for a block outside the
    /// arena, None for one that has been dropped for good.
    fn longer(&self, block: u32, until: usize) -> Option<Option<(u32, usize)>> {
        let segments = &self.segments[block as usize];
        if segments.is_empty() {
            return Some(None); // outside the arena
        }
        let segment = segments.iter().rposition(|uses| uses[0] <= until)?;
        Some(Some((block, segment)))
    }

    /// The last step of a segment.
    fn end(&self, block: u32, segment: usize) -> usize {
        *self.segments[block as usize][segment].last().expect("segments have uses")
    }

    pub(super) fn apply(&mut self, candidate: &Candidate) {
        let &Candidate { block, before, .. } = candidate;
        for &(input, segment) in &candidate.longer {
            let (end, bytes) = (self.end(input, segment), self.draft.size(input));
            let uses = &mut self.segments[input as usize][segment];
            if let Err(place) = uses.binary_search(&before) {
                uses.insert(place, before);
            }
            let grown = self.live.get_mut(end + 1..=before).unwrap_or_default();
            grown.iter_mut().for_each(|live| *live += bytes);
        }
        let bytes = self.draft.size(block);
        self.live[candidate.last + 1..before].iter_mut().for_each(|live| *live -= bytes);
        let segments = &mut self.segments[block as usize];
        let split = segments.iter_mut().enumerate().find_map(|(i, uses)| {
            let next = uses.binary_search(&before).ok()?;
            Some((i + 1, uses.split_off(next)))
        });
        let (place, rest) = split.expect("the candidate's segment has the step");
        segments.insert(place, rest);
    }
}
