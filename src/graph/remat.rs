//! Recomputation: what is cheap to compute again is not kept while memory is scarcest. The choice
//! is greedy, after Kirisame et al. (2021): where most bytes live at once, what frees most of them
//! for the least time goes first. Nothing here changes a value: what is computed again is a
//! function of what has not been written since.

use smallvec::smallvec;

use super::Role;
use super::draft::{Again, Draft, Step};
use crate::device::ALIGNMENT;
use crate::ops::Effects;

/// What is worth being computed again.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Blocks of fewer bytes are kept.
    pub bytes: usize,
    /// The share of a run's time that may go into computing again.
    pub share: f64,
    /// By what part the peak has to fall; else all stays as it is.
    pub gain: f64,
}

impl Limits {
    /// What a graph is worth without being asked.
    pub const DEFAULT: Limits = Limits { bytes: 1 << 20, share: 0.06, gain: 0.02 };
    /// Whatever lowers the peak.
    pub const NONE: Limits = Limits { bytes: 1, share: 1.0, gain: 0.0 };
}

/// Operations that a processor computes in the time in which it moves a byte: where they are many
/// for each byte, as in matrix products and convolutions, and elsewhere, where they are exponential
/// functions and the like.
const DENSE: f64 = 8.0;
/// See `DENSE`.
const SPARSE: f64 = 1.0;
/// The operations a byte from which on they are many.
const MANY: f64 = 4.0;

/// What to compute again, and before which step.
pub fn choose(draft: &Draft, limits: Limits) -> Vec<Again> {
    let mut state = State::new(draft, limits.bytes);
    let before = state.peak().1;
    let mut allowed = limits.share * state.times.iter().sum::<f64>();
    let (mut chosen, mut lowest, mut useful) = (Vec::new(), before, 0);
    while let Some(best) = state.best(allowed) {
        allowed -= best.time;
        state.apply(&best);
        let Candidate { maker, block, before, .. } = best;
        chosen.push(Again { maker, blocks: smallvec![block], before });
        let peak = state.peak().1;
        if peak < lowest {
            (lowest, useful) = (peak, chosen.len());
        }
    }
    chosen.truncate(useful);
    // Where one is computed from another, that one comes first: it did so before.
    chosen.sort_unstable_by_key(|again| (again.before, again.maker));
    if (lowest as f64) < (1.0 - limits.gain) * before as f64 { chosen } else { Vec::new() }
}

/// An estimate of a step's time, in bytes that could be moved meanwhile.
pub fn time(step: &Step) -> f64 {
    let cost = step.op.cost();
    let (bytes, flops) = (cost.bytes as f64, cost.flops as f64);
    bytes + flops / if flops > MANY * bytes { DENSE } else { SPARSE }
}

/// The steps that use a block from when it is made, or made again, until it is dropped.
type Segment = Vec<usize>;

/// A way to free memory.
struct Candidate {
    /// The step that makes the block.
    maker: usize,
    block: u32,
    /// The step before which it is made again.
    before: usize,
    /// The last step that uses the block before it is dropped.
    last: usize,
    /// Blocks that have to be kept longer for that, each with the segment that grows.
    longer: Vec<(u32, usize)>,
    time: f64,
    /// The bytes that are free at the peak, for each unit of time.
    score: f64,
}

/// A block that a step alone makes, and may make again.
struct Made {
    block: u32,
    maker: usize,
    /// What no candidate that frees the block scores more than.
    most: f64,
}

struct State<'a> {
    draft: &'a Draft,
    /// What is worth being freed, in bytes.
    worth: usize,
    /// What may be made again and is worth it, in descending order of `most`; of equal ones the
    /// last first, since what is kept briefly costs others least.
    made: Vec<Made>,
    /// By block; of what does not lie in the arena there are none.
    segments: Vec<Vec<Segment>>,
    /// The bytes that live during each step.
    live: Vec<usize>,
    /// The time of each step.
    times: Vec<f64>,
}

impl<'a> State<'a> {
    fn new(draft: &'a Draft, worth: usize) -> Self {
        let mut segments = vec![Vec::new(); draft.blocks()];
        let mut live = vec![0; draft.numbers().len()];
        let mut times = vec![0.0; live.len()];
        for (n, step) in draft.steps() {
            live[n] += step.op.kernel.scratch();
            times[n] = time(step);
            for place in step.places().filter(|place| draft.role(place.block) == Role::Temporary) {
                let known: &mut Vec<Segment> = &mut segments[place.block as usize];
                match known.first_mut() {
                    Some(uses) if uses.last() == Some(&n) => {}
                    Some(uses) => uses.push(n),
                    None => known.push(vec![n]),
                }
            }
        }
        for (block, uses) in (0u32..).zip(&segments) {
            if let [uses] = &uses[..] {
                let lives = &mut live[uses[0]..=uses[uses.len() - 1]];
                lives.iter_mut().for_each(|bytes| *bytes += size(draft, block));
            }
        }
        let mut state = State { draft, worth, made: Vec::new(), segments, live, times };
        state.share();
        state.made = state.made();
        state
    }

    /// See the field.
    fn made(&self) -> Vec<Made> {
        let blocks = (0..self.draft.blocks() as u32).map(|block| (block, size(self.draft, block)));
        let made = blocks.filter(|&(_, bytes)| bytes >= self.worth).filter_map(|(block, bytes)| {
            let maker = self.maker(block)?;
            Some(Made { block, maker, most: bytes as f64 / self.times[maker] })
        });
        let mut made: Vec<Made> = made.collect();
        made.sort_by(|a, b| b.most.total_cmp(&a.most).then(b.block.cmp(&a.block)));
        made
    }

    /// An output that takes the memory of an input in place is not counted beside it.
    fn share(&mut self) {
        for (n, step) in self.draft.steps() {
            for &(i, o) in step.op.kind.family().in_place() {
                let (from, to) = (step.inputs[i].block, step.outputs[o].block);
                let ends = self.segments[from as usize].first().and_then(|uses| uses.last());
                let starts = self.segments[to as usize].first().and_then(|uses| uses.first());
                if ends == Some(&n)
                    && starts == Some(&n)
                    && step.inputs[i].meta == step.outputs[o].meta
                {
                    self.live[n] -= size(self.draft, to).min(self.live[n]);
                }
            }
        }
    }

    /// The step during which most bytes live, and how many.
    fn peak(&self) -> (usize, usize) {
        let steps = self.live.iter().copied().enumerate();
        steps.max_by_key(|&(n, bytes)| (bytes, std::cmp::Reverse(n))).unwrap_or((0, 0))
    }

    /// What frees most bytes at the peak for its time, of what takes no longer than `allowed`.
    fn best(&self, allowed: f64) -> Option<Candidate> {
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

    /// What dropping a block during the peak would take.
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
        let kept: usize = kept.map(|&(block, _)| size(self.draft, block)).sum();
        let freed =
            size(self.draft, block).checked_sub(kept).filter(|&freed| freed >= self.worth)?;
        let time = self.times[maker];
        Some(Candidate { maker, block, before, last, longer, time, score: freed as f64 / time })
    }

    /// The step that alone makes all of a block, and nothing else, from its inputs alone.
    fn maker(&self, block: u32) -> Option<usize> {
        let first = *self.segments[block as usize].first()?.first()?;
        let step = self.draft.step(first)?;
        let [output] = &step.outputs[..] else { return None };
        let is_whole = output.block == block && output.meta.bytes() == self.draft.bytes(block);
        let is_pure = step.op.effects == Effects::PURE;
        let is_alone = self.draft.maker(output) == Some(first)
            && step.inputs.iter().all(|input| input.block != block);
        (is_whole && is_pure && is_alone).then_some(first)
    }

    /// The segment of a block that has to last until a step, if there is need to say so; None
    /// where the block has been dropped for good.
    fn longer(&self, block: u32, until: usize) -> Option<Option<(u32, usize)>> {
        let segments = &self.segments[block as usize];
        if segments.is_empty() {
            return Some(None); // outside of the arena
        }
        let segment = segments.iter().rposition(|uses| uses[0] <= until)?;
        Some(Some((block, segment)))
    }

    /// The last step of a segment.
    fn end(&self, block: u32, segment: usize) -> usize {
        *self.segments[block as usize][segment].last().expect("segments have uses")
    }

    fn apply(&mut self, candidate: &Candidate) {
        let &Candidate { block, before, .. } = candidate;
        for &(input, segment) in &candidate.longer {
            let (end, bytes) = (self.end(input, segment), size(self.draft, input));
            let uses = &mut self.segments[input as usize][segment];
            if let Err(place) = uses.binary_search(&before) {
                uses.insert(place, before);
            }
            let grown = self.live.get_mut(end + 1..=before).unwrap_or_default();
            grown.iter_mut().for_each(|live| *live += bytes);
        }
        let bytes = size(self.draft, block);
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

/// Bytes of a block in the arena.
pub(super) fn size(draft: &Draft, block: u32) -> usize {
    draft.bytes(block).next_multiple_of(ALIGNMENT)
}

#[cfg(test)]
mod tests;
