//! Gives every in-place update of a temporary (such as an accumulated gradient) a tensor of its
//! own, so that the other rules see the data dependencies. The memory plan puts both in one place
//! again.

use crate::graph::draft::Draft;
use crate::graph::{Place, Role};
use crate::ops::{Effects, Reach};

/// Applies the rule wherever it fits.
pub fn apply(draft: &mut Draft) {
    for n in draft.numbers() {
        if let Some(block) = found(draft, n) {
            draft.rename(block, n);
        }
    }
}

/// The block that step `n` updates elementwise, reading it once, if it is a temporary.
fn found(draft: &Draft, n: usize) -> Option<u32> {
    let step = draft.step(n)?;
    let [output] = &step.outputs[..] else { return None };
    let is_same = |input: &&Place| input.block == output.block;
    let mut same = step.inputs.iter().enumerate().filter(|(_, input)| is_same(input));
    let (i, input) = same.next().filter(|_| same.next().is_none())?;
    let family = step.call.kind.family();
    let fits = input == output
        && family.reach(output.meta.shape.rank()) == Reach::Element
        && step.call.effects == Effects::PURE
        && family.in_place().contains(&(i, 0))
        && draft.role(output.block) == Role::Temporary
        && draft.is_whole(output);
    fits.then_some(output.block)
}
