//! Fuses operations on elements and rows that follow each other into a single pass over memory.

use super::{Fused, Inputs, as_links, fuse};
use crate::device::ALIGNMENT;
use crate::error::Result;
use crate::graph::draft::Draft;
use crate::graph::{Place, Role};
use crate::kernels::Fusing;
use crate::rewrite::matching::At;

/// Applies the rule wherever it fits.
///
/// # Errors
/// Any error of inferring an operation.
pub fn apply(draft: &mut Draft, limits: Fusing) -> Result<()> {
    fuse(draft, |to| found(to, limits))
}

/// A step fused with one that makes what it reads.
fn found(to: At, limits: Fusing) -> Option<Fused> {
    let second = as_links(to).filter(|_| to.makes_all())?;
    to.inputs.iter().find_map(|place| {
        let from = to.maker(place)?;
        let first = as_links(from)?;
        let fits = from.makes_all()
            && from.may_move_to(to)
            && from.outputs.iter().all(|output| to.sees_whole(output))
            && takes_no_more(from, to);
        let fused = || Fused::new((from, first), (to, second.clone()), Inputs::of_first(from, to));
        fits.then(fused).filter(|fused| fused.is_worth_it(to.draft, limits))
    })
}

/// Whether running a step together with a later one, which reads its outputs, takes no more memory:
/// neither up to the later one, nor there, where an input kept for it may become the result.
fn takes_no_more(from: At, to: At) -> bool {
    let bytes = |place: &Place| to.draft.bytes(place.block);
    let is_between = |output: &&Place| to.draft.only_reader(output.block) == Some(to.n);
    let made: usize = from.outputs.iter().map(bytes).sum();
    let between: usize = from.outputs.iter().filter(is_between).map(bytes).sum();
    let result = &to.outputs[0];
    let is_gained = becomes(to, &from.inputs, result) && !becomes(to, &to.inputs, result);
    let gained = if is_gained { bytes(result) } else { 0 };
    // Ignores a few scalars.
    from.kept_longer(to) <= made.min(between + gained) + ALIGNMENT
}

/// Whether a result of a step can share the memory of one of these inputs, which nothing needs
/// later.
fn becomes(to: At, inputs: &[Place], result: &Place) -> bool {
    let lives_within = |place: &Place| to.draft.role(place.block) == Role::Temporary;
    let ends = |input: &Place| {
        to.draft.readers(input.block).last().is_none_or(|last| !to.draft.is_before(to.n, last))
    };
    let fits = |input: &Place| input.meta == result.meta && lives_within(input) && ends(input);
    lives_within(result) && inputs.iter().any(fits)
}

impl Fused {
    /// Whether the links can run block by block, and fusing saves memory traffic or call overhead.
    fn is_worth_it(&self, draft: &Draft, limits: Fusing) -> bool {
        if self.inputs.len() > limits.inputs || self.region.links.len() > limits.links {
            return false;
        }
        let Some(values) = self.values() else { return false };
        let bytes = self.outputs[0].meta.bytes();
        let is_kept = limits.short < bytes && bytes < limits.large_rows;
        (!(is_kept && self.region.has_rows()) || self.follows_blocks(draft))
            && draft.target().is_blocked(&self.region, &values)
    }

    /// Whether an input is produced in blocks, so that the links may follow its producer.
    fn follows_blocks(&self, draft: &Draft) -> bool {
        let makes_blocks = |step: At| draft.target().is_split(step.kind(), &step.metas());
        let maker = |place: &Place| At::new(draft, draft.maker(place)?);
        self.inputs.iter().filter_map(maker).any(makes_blocks)
    }
}
