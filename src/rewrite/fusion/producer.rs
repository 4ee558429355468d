//! Fuses operations on elements and rows with the product or convolution before them: they process
//! each block of its result while it is in the cache.

use super::{Fused, Inputs, as_links, as_producer, fuse};
use crate::error::Result;
use crate::graph::Place;
use crate::graph::draft::Draft;
use crate::kernels::Fusing;
use crate::rewrite::matching::At;

/// Applies the rule wherever it fits.
///
/// # Errors
/// Any error of inferring an operation.
pub fn apply(draft: &mut Draft, limits: Fusing) -> Result<()> {
    fuse(draft, |to| found(to, limits))
}

/// A step fused with the producer of what it reads.
fn found(to: At, limits: Fusing) -> Option<Fused> {
    let links = as_links(to)?;
    to.inputs.iter().find_map(|made| {
        let from = to.maker(made)?;
        let at = place_for(from, to, made)?;
        let producer = as_producer(from)?;
        let inputs = Inputs::of_second(from, to);
        let fused = Fused { at, ..Fused::new((from, producer), (to, links.clone()), inputs) };
        fused.pays_off(to.draft, limits, made).then_some(fused)
    })
}

/// Where a step that produces `made` and another that reads it can be fused: at the first, unless
/// the second's inputs are not available there yet, or at the second, unless the first's inputs are
/// gone by then.
fn place_for(from: At, to: At, made: &Place) -> Option<usize> {
    let draft = to.draft;
    let is_part = |place: &Place| place.block == made.block && place != made;
    // User code may observe the order of writes.
    let has_host = draft.has_host_between(from.n, to.n);
    if has_host || to.inputs.iter().any(is_part) || !to.writes_apart(&from.inputs) {
        return None;
    }
    let holds = |place: &Place| place.block == made.block || from.holds_until(place, to);
    let is_untouched = |output: &Place| {
        from.holds_until(output, to) && !draft.is_read_between(output.block, from.n, to.n)
    };
    // What lasts is written only if nothing before it fails.
    let lasts = to.outputs.iter().any(|output| draft.role(output.block).lasts());
    let is_safe = !lasts || !draft.has_fault_between(from.n, to.n);
    if is_safe && to.inputs.iter().all(holds) && to.outputs.iter().all(is_untouched) {
        return Some(from.n);
    }
    let is_kept = draft.only_reader(made.block) != Some(to.n);
    let saved = if is_kept { 0 } else { made.meta.bytes() };
    let fits = from.may_move_to(to) && to.sees_whole(made) && from.kept_longer(to) <= saved;
    fits.then_some(to.n)
}

impl Fused {
    /// Whether the results keep their layouts, the first of them that of the producer's result,
    /// which stays in the cache for the links; or fusing saves the overhead of a short operation.
    fn pays_off(&self, draft: &Draft, limits: Fusing, made: &Place) -> bool {
        let Some(values) = self.values() else { return false };
        let producer = self.region.producer.as_deref().map_or(0, |link| link.operands.len());
        self.outputs[0].meta == made.meta
            && self.inputs.len() - producer < limits.inputs
            && (made.meta.bytes() <= limits.short
                || draft.target().is_blocked(&self.region, &values))
    }
}
