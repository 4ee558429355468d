//! Fuses elementwise operations after a product or a convolution into its epilogue, which processes
//! each block of the result while it is in the cache; if nothing else reads the result, it is never
//! written.

use smallvec::SmallVec;

use super::chain::links;
use super::{add_new, is_seen_whole, kept_longer, writes_apart};
use crate::error::Result;
use crate::graph::draft::Draft;
use crate::graph::{Op, Place};
use crate::kernels::Fusing;
use crate::ops::chain::Chain;
use crate::ops::epilogue::{Epilogue, Producer};
use crate::ops::{Family, Meta};

/// Applies the rule wherever it fits.
///
/// # Errors
/// Any error of inferring an operation.
pub fn apply(draft: &mut Draft, limits: Fusing) -> Result<()> {
    for n in draft.numbers() {
        let Some((at, fused)) = found(draft, limits, n) else { continue };
        let call = draft.infer(fused.epilogue.into(), &fused.inputs)?;
        let origin = draft.step(n).expect("it was found").origin;
        draft.remove(fused.before);
        draft.remove(n);
        draft.replace(at, Op { call, inputs: fused.inputs, outputs: fused.outputs, origin });
    }
    Ok(())
}

/// The producer at step `before`, with its epilogue.
struct Fused {
    before: usize,
    epilogue: Epilogue,
    inputs: SmallVec<[Place; 4]>,
    outputs: SmallVec<[Place; 2]>,
}

/// The producer that step `n` can be fused with, and the step that then holds both.
fn found(draft: &Draft, limits: Fusing, n: usize) -> Option<(usize, Fused)> {
    let step = draft.step(n)?;
    let chain = links(step)?;
    step.inputs.iter().find_map(|made| {
        let before = draft.maker(made)?;
        let at = place_for(draft, before, n, made)?;
        let fused = Fused::new(draft, before, (n, &chain), made)?;
        let fits = fused.infers_outputs(made) && fused.is_worth_it(draft, limits, made);
        fits.then_some((at, fused))
    })
}

/// Where step `before`, which produces `made`, and step `n`, which reads it, can be fused: at the
/// first, unless the second's inputs are not available there yet, or at the second, unless the
/// first's inputs are gone by then.
fn place_for(draft: &Draft, before: usize, n: usize, made: &Place) -> Option<usize> {
    let (first, second) = (draft.step(before)?, draft.step(n)?);
    let holds = |place: &Place| place.block == made.block || draft.holds(place, before, n);
    let is_part = |place: &Place| place.block == made.block && place != made;
    // User code may observe the order of writes.
    let has_host = draft.has_host_between(before, n);
    if has_host || second.inputs.iter().any(is_part) || !writes_apart(draft, n, &first.inputs) {
        return None;
    }
    let is_untouched = |output: &Place| {
        draft.holds(output, before, n) && !draft.is_read_between(output.block, before, n)
    };
    if second.inputs.iter().all(holds) && second.outputs.iter().all(is_untouched) {
        return Some(before);
    }
    let saved = if is_kept(draft, n, made) { 0 } else { made.meta.bytes() };
    let fits = first.inputs.iter().all(holds)
        && is_seen_whole(draft, made, n)
        && kept_longer(draft, first, n) <= saved;
    fits.then_some(n)
}

/// Whether anything besides step `n` reads `made`.
fn is_kept(draft: &Draft, n: usize, made: &Place) -> bool {
    draft.only_reader(made.block) != Some(n)
}

impl Fused {
    fn new(
        draft: &Draft,
        before: usize,
        (n, chain): (usize, &Chain),
        made: &Place,
    ) -> Option<Fused> {
        let (from, to) = (draft.step(before)?, draft.step(n)?);
        let producer = Producer::of(&from.call.kind)?;
        let mut inputs: SmallVec<[Place; 4]> = SmallVec::new();
        add_new(&mut inputs, to.inputs.iter().filter(|&place| place != made));
        let chain = behind(chain, &to.inputs, &inputs);
        inputs.extend(from.inputs.iter().cloned());
        let keeps = is_kept(draft, n, made);
        let kept = keeps.then(|| made.clone());
        let outputs = to.outputs.iter().cloned().chain(kept).collect();
        Some(Fused { before, epilogue: Epilogue { producer, chain, keeps }, inputs, outputs })
    }

    /// Whether the fused results keep their layouts, the first of them that of the producer's
    /// result.
    fn infers_outputs(&self, made: &Place) -> bool {
        let outputs = self.outputs.iter().map(|place| &*place.meta);
        self.outputs[0].meta == made.meta
            && self.epilogue.infer(&self.metas()).is_ok_and(|metas| metas.iter().eq(outputs))
    }

    /// Whether the producer's result stays in the cache for the chain, or fusing saves the overhead
    /// of a short operation.
    fn is_worth_it(&self, draft: &Draft, limits: Fusing, made: &Place) -> bool {
        let is_blocked = || draft.target().blocks_epilogue(&self.epilogue, &self.metas());
        self.epilogue.chain.inputs <= limits.inputs
            && (made.meta.bytes() <= limits.short || is_blocked())
    }

    fn metas(&self) -> SmallVec<[&Meta; 8]> {
        self.inputs.iter().map(|place| &*place.meta).collect()
    }
}

/// A chain of these inputs, renumbered so that the producer's result comes first and then `others`.
fn behind(chain: &Chain, inputs: &[Place], others: &[Place]) -> Chain {
    let count = 1 + others.len();
    let renamed = |v: usize| match inputs.get(v) {
        Some(place) => others.iter().position(|other| other == place).map_or(0, |i| 1 + i),
        None => v - inputs.len() + count,
    };
    let links = chain.links.iter().map(|link| link.renamed(renamed)).collect();
    Chain { inputs: count, links, outputs: chain.outputs.clone() }
}
