//! Fuses the product that computes a weight's gradient into the weight's update: the gradient is
//! computed a few rows at a time and never stored as a whole.

use super::{kept_longer, remake};
use crate::error::Result;
use crate::graph::Op;
use crate::graph::draft::Draft;
use crate::ops::Kind;
use crate::ops::optim::{MatmulUpdate, Update};

/// Applies the rule wherever it fits.
///
/// # Errors
/// Any error of inferring an operation.
pub fn apply(draft: &mut Draft) -> Result<()> {
    for n in draft.numbers() {
        let Some((product, update)) = found(draft, n) else { continue };
        let factors = draft.step(product).expect("it was found").inputs.clone();
        let mut inputs = draft.step(n).expect("it was found").inputs.clone();
        inputs[1] = factors[0].clone();
        inputs.push(factors[1].clone());
        remake(draft, n, MatmulUpdate { update }.into(), inputs)?;
        draft.remove(product);
    }
    Ok(())
}

/// A match: step `n` is an update whose gradient is a product that nothing else reads. Returns the
/// product's step, and the update.
fn found(draft: &Draft, n: usize) -> Option<(usize, Update)> {
    let step = draft.step(n)?;
    let update = Update::of(&step.call.kind)?;
    let gradient = &step.inputs[1];
    let maker = draft.maker(gradient)?;
    let product = draft.step(maker)?;
    let fits = draft.only_reader(gradient.block) == Some(n)
        && is_split_product(draft, product)
        && product.inputs.iter().all(|factor| {
            draft.holds(factor, maker, n) && step.outputs.iter().all(|o| o.block != factor.block)
        })
        && kept_longer(draft, product, n) <= gradient.meta.bytes();
    fits.then_some((maker, update))
}

/// Whether a step is a product that is computed in blocks of rows.
fn is_split_product(draft: &Draft, step: &Op) -> bool {
    let io = step.call.io();
    matches!(step.call.kind, Kind::Matmul(_))
        && io[2].shape.rank() == 2
        && draft.target().is_split(&step.call.kind, &io)
}
