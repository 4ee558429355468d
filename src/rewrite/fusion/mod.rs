//! Fusion: operations become a region, in which intermediate results that nothing else reads are
//! never written.

pub mod gate;
pub mod links;
pub mod producer;
pub mod reduction;
pub mod sum;
pub mod update;

use smallvec::{SmallVec, smallvec};

use super::matching::{At, wherever};
use crate::error::Result;
use crate::graph::draft::Draft;
use crate::graph::{Op, Place};
use crate::ops::region::{Link, Region};
use crate::ops::{Effects, Kind, Locality, Meta};

/// The region that replaces two steps, and its places.
pub struct Fused {
    region: Region,
    inputs: SmallVec<[Place; 4]>,
    outputs: SmallVec<[Place; 2]>,
    /// The steps that it replaces.
    steps: [usize; 2],
    /// Which of them becomes the region.
    at: usize,
}

/// The inputs of two steps that become one.
struct Inputs {
    all: SmallVec<[Place; 4]>,
    /// The numbers among them of the first step's inputs.
    first: SmallVec<[usize; 8]>,
    /// The numbers among them of the second step's inputs, unless the first step makes them.
    second: SmallVec<[usize; 8]>,
}

impl Inputs {
    /// The first step's, followed by those that only the second one reads.
    fn of_first(from: At, to: At) -> Inputs {
        Inputs::behind(from, to, 0)
    }

    /// The first step's, followed by all that the second one reads besides its results.
    fn of_both(from: At, to: At) -> Inputs {
        Inputs::behind(from, to, from.inputs.len())
    }

    /// The first step's; the second one's are found among them from `start` on, or follow.
    fn behind(from: At, to: At, start: usize) -> Inputs {
        let mut all = from.inputs.clone();
        let second = to.inputs.iter().map(|place| number(&mut all, from, place, start)).collect();
        Inputs { first: (0..from.inputs.len()).collect(), second, all }
    }

    /// The second step's, followed by all of the first one's.
    fn of_second(from: At, to: At) -> Inputs {
        let mut all = smallvec![];
        let second = to.inputs.iter().map(|place| number(&mut all, from, place, 0)).collect();
        let first = (all.len()..all.len() + from.inputs.len()).collect();
        all.extend(from.inputs.iter().cloned());
        Inputs { all, first, second }
    }

    /// The second step's at their own places, with an input of the first step at `slot`, which the
    /// first step makes; the first one's remaining inputs follow.
    fn in_slot(from: At, to: At, slot: usize) -> Inputs {
        let (mut all, count) = (to.inputs.clone(), to.inputs.len());
        all[slot] = from.inputs[0].clone();
        all.extend(from.inputs[1..].iter().cloned());
        let first = std::iter::once(slot).chain(count..all.len()).collect();
        Inputs { first, second: (0..count).collect(), all }
    }
}

/// The number of a place that `from` does not make, which is appended unless it is among `all` from
/// `start` on.
fn number(all: &mut SmallVec<[Place; 4]>, from: At, place: &Place, start: usize) -> usize {
    if from.outputs.contains(place) {
        return usize::MAX;
    }
    position(&all[start..], place).map_or_else(
        || {
            all.push(place.clone());
            all.len() - 1
        },
        |at| start + at,
    )
}

impl Fused {
    /// Two steps as one region, of these inputs. What else reads results of the first one is an
    /// output, after those of the second.
    fn new((from, first): (At, Region), (to, second): (At, Region), inputs: Inputs) -> Fused {
        let (count, done) = (inputs.all.len(), first.operations().count());
        let of_first =
            |v: usize| inputs.first.get(v).copied().unwrap_or(v - first.inputs.min(v) + count);
        let of_second = |v: usize| match to.inputs.get(v) {
            Some(place) => position(&from.outputs, place)
                .map_or_else(|| inputs.second[v], |output| count + first.outputs[output]),
            None => v - second.inputs + count + done,
        };
        let boxed = |link: &Option<Box<Link>>, rename: &dyn Fn(usize) -> usize| {
            link.as_deref().map(|link| Box::new(link.renamed(rename)))
        };
        let links = first.links.iter().map(|link| link.renamed(of_first));
        let mut region = Region {
            inputs: count,
            producer: boxed(&first.producer, &of_first),
            links: links.chain(second.links.iter().map(|link| link.renamed(of_second))).collect(),
            consumer: boxed(&second.consumer, &of_second),
            outputs: second.outputs.iter().map(|output| output + done).collect(),
            exact: true,
        };
        let mut outputs = to.outputs.clone();
        for (place, &output) in from.outputs.iter().zip(&first.outputs) {
            if from.draft.only_reader(place.block) != Some(to.n) {
                outputs.push(place.clone());
                region.outputs.push(output);
            }
        }
        Fused { region, inputs: inputs.all, outputs, steps: [from.n, to.n], at: to.n }
    }

    /// The region's values, if its results have the metas of the outputs.
    fn values(&self) -> Option<Vec<Meta>> {
        let inputs: SmallVec<[&Meta; 8]> = self.inputs.iter().map(|place| &*place.meta).collect();
        let values = self.region.values(&inputs).ok()?;
        let mut outputs = self.region.outputs.iter().zip(&self.outputs);
        let is_alike =
            |(&o, place): (&usize, &Place)| values[self.region.inputs + o] == *place.meta;
        outputs.all(is_alike).then_some(values)
    }
}

/// Fuses steps wherever `find` finds some. The result comes from where the one with the most
/// arithmetic comes from.
fn fuse(draft: &mut Draft, find: impl Fn(At) -> Option<Fused>) -> Result<()> {
    wherever(draft, find, |draft, Fused { region, inputs, outputs, steps, at }| {
        let call = draft.infer(region.into(), &inputs)?;
        let found = steps.iter().filter_map(|&n| draft.step(n));
        let most = found.max_by_key(|step| step.call.cost().flops).expect("they were found");
        let origin = most.origin;
        steps.into_iter().for_each(|n| draft.remove(n));
        draft.replace(at, Op { call, inputs, outputs, origin });
        Ok(())
    })
}

/// A step as links: a region of links alone, or an operation on elements or rows. Types that are
/// stored and nothing else are only moved and converted, which regions do not do.
fn as_links(step: At) -> Option<Region> {
    if let Kind::Region(region) = step.kind() {
        let is_links = region.producer.is_none() && region.consumer.is_none();
        return is_links.then(|| region.clone());
    }
    let family = step.kind().family();
    let fits = step.outputs.len() == 1
        && family.locality() != Locality::All
        && !family.may_fail()
        && step.call.effects == Effects::PURE
        && step.places().all(|place| !place.meta.dtype.is_storage());
    let count = step.inputs.len();
    fits.then(|| Region::of_links(count, vec![Link::first(step.kind(), count)], vec![0]))
}

/// A step as the producer of a region.
fn as_producer(step: At) -> Option<Region> {
    let (inputs, kind) = (step.inputs.len(), step.kind());
    let producer = Some(Box::new(Link::first(kind, inputs)));
    let region = Region { producer, ..Region::of_links(inputs, Vec::new(), vec![0]) };
    step.draft.target().is_producer(kind).then_some(region)
}

/// A step as the consumer of a region.
fn as_consumer(step: At) -> Region {
    let (inputs, outputs) = (step.inputs.len(), (0..step.outputs.len()).collect());
    let consumer = Some(Box::new(Link::first(step.kind(), inputs)));
    Region { consumer, ..Region::of_links(inputs, Vec::new(), outputs) }
}

fn position(places: &[Place], place: &Place) -> Option<usize> {
    places.iter().position(|known| known == place)
}
