//! Fuses elementwise and row-wise operations into chains, each a single pass over memory:
//! intermediate results that nothing else reads are never written.

use smallvec::SmallVec;

use super::{add_new, is_seen_whole, kept_longer};
use crate::device::ALIGNMENT;
use crate::error::Result;
use crate::graph::draft::Draft;
use crate::graph::{Op, Place, Role};
use crate::kernels::Fusing;
use crate::ops::chain::{Chain, Link};
use crate::ops::{Effects, Kind, Meta, Reach};

/// Applies the rule wherever it fits.
///
/// # Errors
/// Any error of inferring an operation.
pub fn apply(draft: &mut Draft, limits: Fusing) -> Result<()> {
    for n in draft.numbers() {
        while let Some((before, pair)) = longer(draft, limits, n) {
            let call = draft.infer(pair.chain.into(), &pair.inputs)?;
            let origin = draft.step(n).expect("it was found").origin;
            draft.remove(before);
            draft.replace(n, Op { call, inputs: pair.inputs, outputs: pair.outputs, origin });
        }
    }
    Ok(())
}

/// An earlier step that step `n` can be fused with, and the resulting chain.
fn longer(draft: &Draft, limits: Fusing, n: usize) -> Option<(usize, Pair)> {
    let step = draft.step(n)?;
    let second = as_chain(draft, n)?;
    step.inputs.iter().find_map(|place| {
        let before = draft.maker(place)?;
        let first = as_chain(draft, before)?;
        let pair = Pair::new(draft, (before, &first), (n, &second))?;
        pair.is_worth_it(draft, limits).then_some((before, pair))
    })
}

/// A step as a chain, if it creates its outputs.
fn as_chain(draft: &Draft, n: usize) -> Option<Chain> {
    let step = draft.step(n)?;
    let makes = |output: &Place| draft.maker(output) == Some(n);
    if step.outputs.iter().all(makes) { links(step) } else { None }
}

/// A step as a chain, if it is one, or is elementwise or row-wise.
pub(super) fn links(step: &Op) -> Option<Chain> {
    if let Kind::Chain(chain) = &step.call.kind {
        return Some(chain.clone());
    }
    let (family, [output]) = (step.call.kind.family(), &step.outputs[..]) else { return None };
    let fits = family.reach(output.meta.shape.rank()) != Reach::All
        && family.checked().is_empty()
        && step.call.effects == Effects::PURE;
    fits.then(|| Chain {
        inputs: step.inputs.len(),
        links: vec![Link {
            kind: step.call.kind.clone(),
            operands: (0..step.inputs.len()).collect(),
        }],
        outputs: vec![0],
    })
}

/// Whether fusing the chain at step `before` into step `n`, which reads its outputs, takes no more
/// memory: neither up to step `n`, nor there, where an input kept for it may become the result.
fn takes_no_more(draft: &Draft, before: usize, n: usize) -> bool {
    let (Some(chain), Some(step)) = (draft.step(before), draft.step(n)) else { return false };
    let bytes = |place: &Place| draft.bytes(place.block);
    let is_between = |output: &&Place| draft.only_reader(output.block) == Some(n);
    let made: usize = chain.outputs.iter().map(bytes).sum();
    let between: usize = chain.outputs.iter().filter(is_between).map(bytes).sum();
    let result = &step.outputs[0];
    let is_gained =
        becomes(draft, &chain.inputs, result, n) && !becomes(draft, &step.inputs, result, n);
    let gained = if is_gained { bytes(result) } else { 0 };
    // Ignores a few scalars.
    kept_longer(draft, chain, n) <= made.min(between + gained) + ALIGNMENT
}

/// Whether a result of step `n` can share the memory of one of these inputs, which nothing needs
/// later.
fn becomes(draft: &Draft, inputs: &[Place], result: &Place, n: usize) -> bool {
    let lives_within = |place: &Place| draft.role(place.block) == Role::Temporary;
    let ends = |input: &Place| {
        draft.readers(input.block).last().is_none_or(|last| !draft.is_before(n, last))
    };
    lives_within(result)
        && inputs
            .iter()
            .any(|input| input.meta == result.meta && lives_within(input) && ends(input))
}

/// Two chains fused into one, which replaces the second.
struct Pair {
    chain: Chain,
    inputs: SmallVec<[Place; 4]>,
    outputs: SmallVec<[Place; 2]>,
}

impl Pair {
    /// None if the chains cannot be fused, or that would take more memory than it saves.
    fn new(
        draft: &Draft,
        (before, first): (usize, &Chain),
        (n, second): (usize, &Chain),
    ) -> Option<Pair> {
        let (from, to) = (draft.step(before)?, draft.step(n)?);
        let is_needed = |output: &&Place| draft.only_reader(output.block) != Some(n);
        let fits = from.inputs.iter().all(|place| draft.holds(place, before, n))
            && from.outputs.iter().all(|output| is_seen_whole(draft, output, n))
            && takes_no_more(draft, before, n);
        if !fits {
            return None;
        }
        let mut pair = Pair::joined((from, first), (to, second));
        for (output, &link) in from.outputs.iter().zip(&first.outputs).filter(|(o, _)| is_needed(o))
        {
            pair.outputs.push(output.clone());
            pair.chain.outputs.push(link);
        }
        Some(pair)
    }

    /// Computes the second chain's outputs from the inputs of both.
    fn joined((from, first): (&Op, &Chain), (to, second): (&Op, &Chain)) -> Pair {
        let mut inputs = from.inputs.clone();
        add_new(&mut inputs, to.inputs.iter().filter(|place| !from.outputs.contains(place)));
        let (count, done) = (inputs.len(), first.links.len());
        let value = |place: &Place| match position(&from.outputs, place) {
            Some(output) => count + first.outputs[output],
            None => position(&inputs, place).expect("all other inputs are there"),
        };
        let of_first = |v: usize| if v < first.inputs { v } else { v - first.inputs + count };
        let of_second = |v: usize| match to.inputs.get(v) {
            Some(place) => value(place),
            None => v - second.inputs + count + done,
        };
        let links = first.links.iter().map(|link| link.renamed(of_first));
        let links = links.chain(second.links.iter().map(|link| link.renamed(of_second))).collect();
        let outputs = second.outputs.iter().map(|link| link + done).collect();
        let chain = Chain { inputs: count, links, outputs };
        Pair { chain, inputs, outputs: to.outputs.clone() }
    }

    /// Whether the chain can run block by block, and fusing saves memory traffic or call overhead.
    fn is_worth_it(&self, draft: &Draft, limits: Fusing) -> bool {
        if self.inputs.len() > limits.inputs || self.chain.links.len() > limits.links {
            return false;
        }
        let inputs: Vec<&Meta> = self.inputs.iter().map(|place| &*place.meta).collect();
        let Ok(values) = self.chain.values(&inputs) else { return false };
        let fits =
            |(link, place): (&usize, &Place)| values[self.chain.inputs + link] == *place.meta;
        let bytes = self.outputs[0].meta.bytes();
        let has_rows = self.chain.has_rows(&values);
        let large = if has_rows { limits.large_rows } else { limits.large };
        (bytes <= limits.short || bytes >= large || self.is_behind_blocks(draft))
            && self.chain.outputs.iter().zip(&self.outputs).all(fits)
            && draft.target().blocks_chain(&self.chain, &values)
    }

    /// Whether an input is produced in blocks, so that the chain may become the producer's
    /// epilogue.
    fn is_behind_blocks(&self, draft: &Draft) -> bool {
        let makes_blocks = |step: &Op| {
            let io: SmallVec<[&Meta; 4]> = step.places().map(|place| &*place.meta).collect();
            draft.target().is_split(&step.call.kind, &io)
        };
        let makers = self.inputs.iter().filter_map(|place| draft.step(draft.maker(place)?));
        makers.into_iter().any(makes_blocks)
    }
}

fn position(places: &[Place], place: &Place) -> Option<usize> {
    places.iter().position(|known| known == place)
}
