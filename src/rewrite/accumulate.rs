//! Fuses an addition into a product, whose sums then start from the addend: a bias, or an
//! accumulated gradient. This changes rounding, so it is done only if results need not be exact.
//! Products that are computed in blocks, and short ones, are left to the epilogue, which keeps
//! every bit and also finds them in the cache.

use smallvec::{SmallVec, smallvec};

use super::{ADD, is_seen_whole, kept_longer, remake, writes_apart};
use crate::error::Result;
use crate::graph::Place;
use crate::graph::draft::Draft;
use crate::kernels::Fusing;
use crate::ops::gemm::{Matmul, MatmulAdd};
use crate::ops::{Family, Kind, Meta};

/// Applies the rule wherever it fits.
///
/// # Errors
/// Any error of inferring an operation.
pub fn apply(draft: &mut Draft, limits: Fusing) -> Result<()> {
    for n in draft.numbers() {
        let Some((product, inputs)) = found(draft, limits, n) else { continue };
        remake(draft, n, MatmulAdd.into(), inputs)?;
        draft.remove(product);
    }
    Ok(())
}

/// A match: step `n` adds something to a product that nothing else reads. Returns the product's
/// step, and its factors with the addend. Of two products, the later one is fused.
fn found(draft: &Draft, limits: Fusing, n: usize) -> Option<(usize, SmallVec<[Place; 4]>)> {
    let step = draft.step(n)?;
    let [a, b] = &step.inputs[..] else { return None };
    if step.call.kind != ADD || a.block == b.block {
        return None;
    }
    let product = |(made, other): (&Place, &Place)| {
        let maker = product_of(draft, limits, made, n)?;
        let mut inputs: SmallVec<[Place; 4]> = smallvec![];
        inputs.extend(draft.step(maker)?.inputs.iter().cloned().chain([other.clone()]));
        infers(&inputs, &step.outputs[0]).then_some((maker, inputs))
    };
    [(a, b), (b, a)].into_iter().filter_map(product).max_by_key(|(maker, _)| *maker)
}

/// The step of a product that could be computed at step `n`, its only reader.
fn product_of(draft: &Draft, limits: Fusing, made: &Place, n: usize) -> Option<usize> {
    let maker = draft.maker(made)?;
    let step = draft.step(maker)?;
    let io: SmallVec<[&Meta; 4]> =
        step.inputs.iter().map(|place| &*place.meta).chain([&*made.meta]).collect();
    let is_whole =
        || made.meta.bytes() > limits.short && !draft.target().is_split(&step.call.kind, &io);
    let fits = step.call.kind == Kind::from(Matmul)
        && draft.only_reader(made.block) == Some(n)
        && is_seen_whole(draft, made, n)
        && step.inputs.iter().all(|factor| draft.holds(factor, maker, n))
        && writes_apart(draft, n, &step.inputs)
        && kept_longer(draft, step, n) <= made.meta.bytes()
        && is_whole();
    fits.then_some(maker)
}

/// Whether the product of the first two inputs plus the third has the layout of this output.
fn infers(inputs: &[Place], output: &Place) -> bool {
    let inputs: SmallVec<[&Meta; 4]> = inputs.iter().map(|place| &*place.meta).collect();
    MatmulAdd.infer(&inputs).is_ok_and(|metas| metas[0] == *output.meta)
}
