//! Elementwise operations become one pass over memory: what lies between two of them, and is read
//! nowhere else, is never written.

use smallvec::SmallVec;

use super::{add_new, is_seen_whole, kept_longer};
use crate::error::Result;
use crate::graph::Place;
use crate::graph::draft::{Draft, Prepare, Step};
use crate::ops::chain::{Chain, Link};
use crate::ops::cpu::chain::Space;
use crate::ops::{Effects, Kind, Meta};

/// A chain has at most so many inputs and links: beyond, blocks of all of them leave the cache.
pub(super) const MOST_INPUTS: usize = 8;
const MOST_LINKS: usize = 16;
/// Bytes of a result below which it stays in the cache between two operations, and one pass over
/// memory brings nothing, unless the operations are so short that to call them counts. Tests put
/// results of any size to the proof.
const LARGE: usize = 256 << 10;
pub(super) const SHORT: usize = if cfg!(test) { LARGE } else { 16 << 10 };

/// Applies the rule wherever it fits.
///
/// # Errors
/// What `prepare` says.
pub fn apply(draft: &mut Draft, prepare: &mut Prepare<'_>) -> Result<()> {
    for n in draft.numbers() {
        while let Some((before, pair)) = longer(draft, n) {
            let op = draft.prepare(pair.chain.into(), &pair.inputs, prepare)?;
            let origin = draft.step(n).expect("it was found").origin;
            draft.remove(before);
            draft.replace(n, Step { op, inputs: pair.inputs, outputs: pair.outputs, origin });
        }
    }
    Ok(())
}

/// A step before `n` that it can be one chain with, and that chain.
fn longer(draft: &Draft, n: usize) -> Option<(usize, Pair)> {
    let step = draft.step(n)?;
    let second = as_chain(draft, n)?;
    step.inputs.iter().find_map(|place| {
        let before = draft.maker(place)?;
        let first = as_chain(draft, before)?;
        let pair = Pair::new(draft, (before, &first), (n, &second))?;
        (pair.is_worth_it() && pair.is_blocked()).then_some((before, pair))
    })
}

/// A step as a chain, if it makes its outputs anew.
fn as_chain(draft: &Draft, n: usize) -> Option<Chain> {
    let step = draft.step(n)?;
    let makes = |output: &Place| draft.maker(output) == Some(n);
    if step.outputs.iter().all(makes) { links(step) } else { None }
}

/// A step as a chain: it is one, or elementwise.
pub(super) fn links(step: &Step) -> Option<Chain> {
    if let Kind::Chain(chain) = &step.op.kind {
        return Some(chain.clone());
    }
    let family = step.op.kind.family();
    let fits =
        family.is_elementwise() && family.checked().is_empty() && step.op.effects == Effects::PURE;
    fits.then(|| Chain {
        inputs: step.inputs.len(),
        links: vec![Link {
            kind: step.op.kind.clone(),
            operands: (0..step.inputs.len()).collect(),
        }],
        outputs: vec![0],
    })
}

/// Two chains as one, in the place of the second.
struct Pair {
    chain: Chain,
    inputs: SmallVec<[Place; 4]>,
    outputs: SmallVec<[Place; 2]>,
}

impl Pair {
    /// None where that does not fit, or would take more memory than it saves.
    fn new(
        draft: &Draft,
        (before, first): (usize, &Chain),
        (n, second): (usize, &Chain),
    ) -> Option<Pair> {
        let (from, to) = (draft.step(before)?, draft.step(n)?);
        let is_needed = |output: &&Place| draft.only_reader(output.block) != Some(n);
        let between: usize = from
            .outputs
            .iter()
            .filter(|output| !is_needed(output))
            .map(|output| draft.bytes(output.block))
            .sum();
        let fits = from.inputs.iter().all(|place| draft.holds(place, before, n))
            && from.outputs.iter().all(|output| is_seen_whole(draft, output, n))
            && kept_longer(draft, from, n) <= between;
        if !fits {
            return None;
        }
        let mut pair = Pair::joined((from, first), (to, second));
        for (output, &link) in from.outputs.iter().zip(&first.outputs).filter(|(o, _)| is_needed(o))
        {
            pair.outputs.push(output.clone());
            pair.chain.outputs.push(link);
        }
        let fits = pair.inputs.len() <= MOST_INPUTS && pair.chain.links.len() <= MOST_LINKS;
        fits.then_some(pair)
    }

    /// The second's outputs made of the inputs of both.
    fn joined((from, first): (&Step, &Chain), (to, second): (&Step, &Chain)) -> Pair {
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

    /// Whether memory, or calls of short operations, are saved.
    fn is_worth_it(&self) -> bool {
        let bytes = self.outputs[0].meta.bytes();
        bytes >= LARGE || bytes <= SHORT
    }

    /// Whether it goes block by block.
    fn is_blocked(&self) -> bool {
        let inputs: Vec<&Meta> = self.inputs.iter().map(|place| &*place.meta).collect();
        let Ok(values) = self.chain.values(&inputs) else { return false };
        let fits =
            |(link, place): (&usize, &Place)| values[self.chain.inputs + link] == *place.meta;
        Space::of(&values, self.chain.inputs).is_some()
            && self.chain.outputs.iter().zip(&self.outputs).all(fits)
    }
}

fn position(places: &[Place], place: &Place) -> Option<usize> {
    places.iter().position(|known| known == place)
}
