//! Recomputation without a budget: blocks that are cheap to recompute are not kept across the
//! memory peak. The choice is greedy, after Kirisame et al. (2021): at the peak, the block that
//! frees most bytes for the least time goes first.

use std::cmp::Reverse;

use smallvec::smallvec;

use super::{Again, Course};

/// What is worth recomputing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Smaller blocks are kept.
    pub bytes: usize,
    /// The share of a run's time that may be spent on recomputation.
    pub share: f64,
    /// The fraction by which the peak has to fall; otherwise nothing is recomputed.
    pub gain: f64,
    /// The same, per share of the time that is spent.
    pub rate: f64,
}

impl Limits {
    /// The limits that apply by default.
    pub const DEFAULT: Limits = Limits { bytes: 1 << 20, share: 0.06, gain: 0.02, rate: 5.0 };
    /// No limits: recompute whatever lowers the peak.
    pub const NONE: Limits = Limits { bytes: 1, share: 1.0, gain: 0.0, rate: 0.0 };
}

/// What to recompute, and before which step.
pub fn choose(course: &Course, limits: Limits) -> Vec<Again> {
    let mut state = State::new(course, limits.bytes);
    let (whole, most) = (course.times.iter().sum::<f64>(), state.peak().1);
    let (mut chosen, mut lowest, mut useful, mut spent) = (Vec::new(), most, 0, 0.0);
    while let Some(best) = state.best(limits.share * whole - spent) {
        spent += course.times[best.maker];
        state.apply(&best);
        let Candidate { maker, block, before, .. } = best;
        chosen.push(Again { maker, blocks: smallvec![block], before });
        let peak = state.peak().1;
        let saved = 1.0 - peak as f64 / most as f64;
        if peak < lowest && saved >= limits.gain.max(limits.rate * spent / whole) {
            (lowest, useful) = (peak, chosen.len());
        }
    }
    chosen.truncate(useful);
    // Of two blocks recomputed before one step, the one made first in the recording comes first,
    // since the other may depend on it.
    chosen.sort_unstable_by_key(|again| (again.before, again.maker));
    chosen
}

/// The steps that use a block from when it is computed, or recomputed, until it is dropped.
type Segment = Vec<usize>;

/// A block that can be dropped and recomputed.
struct Candidate {
    /// The step that makes the block.
    maker: usize,
    block: u32,
    /// The step before which it is recomputed.
    before: usize,
    /// The last step that uses the block before it is dropped.
    last: usize,
    /// Blocks that have to be kept longer for it, each with the segment that grows.
    longer: Vec<(u32, usize)>,
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

/// When blocks are in memory, given the recomputations so far.
struct State<'a> {
    course: &'a Course,
    /// The minimum number of bytes worth freeing.
    worth: usize,
    /// Blocks that may be recomputed and are worth it, in descending order of `most`. Ties go last
    /// first: a late block is needed again soonest, so keeping its inputs costs least.
    made: Vec<Made>,
    /// By block; empty for blocks outside the arena.
    segments: Vec<Vec<Segment>>,
    /// The bytes that are live during each step.
    live: Vec<usize>,
}

impl<'a> State<'a> {
    fn new(course: &'a Course, worth: usize) -> Self {
        let blocks = || 0..course.blocks() as u32;
        let made = blocks().filter_map(|block| {
            let bytes = Some(course.size(block)).filter(|&bytes| bytes >= worth)?;
            let maker = maker(course, block)?;
            Some(Made { block, maker, most: bytes as f64 / course.times[maker] })
        });
        let mut made: Vec<Made> = made.collect();
        made.sort_by(|a, b| b.most.total_cmp(&a.most).then(b.block.cmp(&a.block)));
        let uses = |block: u32| course.users.row(block as usize).iter().map(|&n| n as usize);
        let segment =
            |block| Some(uses(block).collect::<Segment>()).filter(|uses| !uses.is_empty());
        let segments = blocks().map(|block| segment(block).into_iter().collect()).collect();
        State { course, worth, made, segments, live: course.line.curve() }
    }

    /// The step during which most bytes are live, and how many.
    fn peak(&self) -> (usize, usize) {
        let steps = self.live.iter().copied().enumerate();
        steps.max_by_key(|&(n, bytes)| (bytes, Reverse(n))).unwrap_or((0, 0))
    }

    /// The candidate that frees most bytes at the peak for its time and takes at most `allowed`.
    fn best(&self, allowed: f64) -> Option<Candidate> {
        let (peak, _) = self.peak();
        let mut best: Option<Candidate> = None;
        for made in self.made.iter().filter(|made| self.course.times[made.maker] <= allowed) {
            let score = best.as_ref().map_or(0.0, |best| best.score);
            if made.most <= score {
                break;
            }
            best = self.candidate(made, peak).filter(|found| found.score > score).or(best);
        }
        best
    }

    /// The candidate for dropping a block across the peak, if there is one.
    fn candidate(&self, &Made { block, maker, .. }: &Made, peak: usize) -> Option<Candidate> {
        let (last, before) = self.segments[block as usize].iter().find_map(|uses| {
            let next = uses.partition_point(|&n| n <= peak);
            let last = *uses[..next].last()?;
            (last < peak).then_some((last, *uses.get(next)?))
        })?;
        let mut longer = Vec::new();
        for place in &self.course.op(maker).inputs {
            if self.course.written_after(place.block, maker) < before {
                return None;
            }
            if longer.iter().all(|&(known, _)| known != place.block) {
                longer.extend(self.longer(place.block, before)?);
            }
        }
        let kept = longer.iter().filter(|&&(b, s)| self.end(b, s) < peak);
        let kept: usize = kept.map(|&(block, _)| self.course.size(block)).sum();
        let freed = self.course.size(block).checked_sub(kept);
        let score = freed.filter(|&freed| freed >= self.worth)? as f64 / self.course.times[maker];
        Some(Candidate { maker, block, before, last, longer, score })
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

    fn apply(&mut self, candidate: &Candidate) {
        let &Candidate { block, before, last, .. } = candidate;
        for &(input, segment) in &candidate.longer {
            let (end, bytes) = (self.end(input, segment), self.course.size(input));
            let uses = &mut self.segments[input as usize][segment];
            if let Err(place) = uses.binary_search(&before) {
                uses.insert(place, before);
            }
            let grown = self.live.get_mut(end + 1..=before).unwrap_or_default();
            grown.iter_mut().for_each(|live| *live += bytes);
        }
        let bytes = self.course.size(block);
        self.live[last + 1..before].iter_mut().for_each(|live| *live -= bytes);
        let segments = &mut self.segments[block as usize];
        let split = segments.iter_mut().enumerate().find_map(|(i, uses)| {
            let next = uses.binary_search(&before).ok()?;
            Some((i + 1, uses.split_off(next)))
        });
        let (place, rest) = split.expect("the candidate's segment has the step");
        segments.insert(place, rest);
    }
}

/// The step that makes a block, if it makes nothing else and depends only on its inputs.
fn maker(course: &Course, block: u32) -> Option<usize> {
    let first = *course.users.row(block as usize).first()? as usize;
    let [output] = &course.op(first).outputs[..] else { return None };
    let draws = course.op(first).call.effects.generator.is_some();
    (output.block == block && !draws && course.is_repeatable(first)).then_some(first)
}

#[cfg(test)]
mod tests;
