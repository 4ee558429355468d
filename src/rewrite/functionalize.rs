//! Functionalization: every in-place update of a temporary, such as an accumulated gradient, gets a
//! tensor of its own, so that the other rules see the data dependencies. The memory plan puts both
//! in one place again.

use super::matching::{At, wherever};
use crate::error::Result;
use crate::graph::Role;
use crate::graph::draft::Draft;
use crate::ops::{Effects, Locality};

/// Applies the rule wherever it fits.
///
/// # Errors
/// None.
pub fn apply(draft: &mut Draft) -> Result<()> {
    wherever(draft, found, |draft, (n, block)| {
        draft.rename(block, n);
        Ok(())
    })
}

/// The block that a step updates element by element, reading it once, if it is a temporary.
fn found(step: At) -> Option<(usize, u32)> {
    let [output] = &step.outputs[..] else { return None };
    let mut same = (0..).zip(&step.inputs).filter(|(_, input)| input.block == output.block);
    let (i, input) = same.next().filter(|_| same.next().is_none())?;
    let family = step.kind().family();
    let fits = input == output
        && family.locality() == Locality::Element
        && step.call.effects == Effects::PURE
        && family.in_place().contains(&(i, 0))
        && step.draft.role(output.block) == Role::Temporary
        && step.draft.is_whole(output);
    fits.then_some((step.n, output.block))
}
