//! Replaces groups of recorded operations by equivalent ones that take less time and memory. One
//! file a rule; each keeps every bit of what the recorded operations compute.

mod batch_norm;
mod chain;
mod common;
mod dead;
mod matmul_update;
#[cfg(test)]
mod tests;

use crate::error::Result;
use crate::graph::Role;
use crate::graph::draft::{Draft, Prepare, Step};

/// Applies all rules.
///
/// # Errors
/// What `prepare` says.
pub fn rewrite(draft: &mut Draft, prepare: &mut Prepare<'_>) -> Result<()> {
    common::apply(draft);
    dead::apply(draft);
    batch_norm::apply(draft, prepare)?;
    matmul_update::apply(draft, prepare)?;
    chain::apply(draft, prepare)
}

/// The bytes that a step reads and that would have to be kept until step `n` for its sake alone.
fn kept_longer(draft: &Draft, step: &Step, n: usize) -> usize {
    let kept = step.inputs.iter().enumerate().filter(|&(i, place)| {
        let is_first = step.inputs[..i].iter().all(|other| other.block != place.block);
        let is_needed_anyway = draft.readers(place.block).iter().any(|&reader| reader >= n);
        is_first && draft.role(place.block) == Role::Temporary && !is_needed_anyway
    });
    kept.map(|(_, place)| draft.bytes(place.block)).sum()
}
