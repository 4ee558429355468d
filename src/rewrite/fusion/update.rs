//! Fuses the product that computes a weight's gradient with the weight's update: the gradient is
//! computed a few rows at a time and never stored as a whole.

use super::{Fused, Inputs, as_consumer, as_producer, fuse};
use crate::error::Result;
use crate::graph::draft::Draft;
use crate::ops::{Locality, optim};
use crate::rewrite::matching::At;

/// Applies the rule wherever it fits.
///
/// # Errors
/// Any error of inferring an operation.
pub fn apply(draft: &mut Draft) -> Result<()> {
    fuse(draft, found)
}

/// A step that updates each element of a weight, fused with the product that computes the gradient,
/// if nothing else reads that.
fn found(to: At) -> Option<Fused> {
    let update = is_update(to).then(|| as_consumer(to))?;
    let gradient = to.inputs.get(optim::GRADIENT)?;
    let from = to.own_maker(gradient)?;
    let writes = |block: u32| to.outputs.iter().any(|output| output.block == block);
    let fits = gradient.meta.shape.rank() == 2
        && to.draft.target().is_split(from.kind(), &from.metas())
        && from.may_move_to(to)
        && !from.inputs.iter().any(|factor| writes(factor.block))
        && from.kept_longer(to) <= gradient.meta.bytes();
    let producer = as_producer(from).filter(|_| fits)?;
    let inputs = Inputs::in_slot(from, to, optim::GRADIENT);
    let fused = Fused::new((from, producer), (to, update), inputs);
    let values = fused.values()?;
    to.draft.target().is_blocked(&fused.region, &values).then_some(fused)
}

/// Whether a step updates each element of a state.
fn is_update(step: At) -> bool {
    let is_local = step.kind().family().locality() == Locality::Element;
    is_local && !step.call.effects.state.is_empty()
}
