//! Regions: operations fused into one, which graphs run block by block, so that each finds the
//! results of those before it in the cache.

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::reduce::{Reduce, ReduceFn};
use super::{Catalog, Cost, Effects, Family, Kind, Locality, Meta, Metas};
use crate::error::{Error, Result};

/// Operations in sequence: an optional producer whose result can be computed in blocks (a product,
/// a convolution), links that work element by element or row by row, and an optional consumer that
/// updates a state or reduces the last link's result. Values are numbered: first the inputs, then
/// the results of the operations, in order. Intermediate results take the memory of only a few rows.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Region {
    /// The number of inputs.
    pub inputs: usize,
    /// What runs first. It reads inputs that nothing else reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub producer: Option<Box<Link>>,
    /// What follows, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Link>,
    /// What runs last. Operand i of an update is input i or a result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumer: Option<Box<Link>>,
    /// The results that are outputs, numbered from 0: those of the last operation come first, the
    /// producer's comes last.
    pub outputs: Vec<usize>,
    /// Whether results are bit-identical to those of the operations run in turn. If not, the sums
    /// of a producer may start from what a link adds: with K products a sum and u half the distance
    /// from 1 to the next number, an element is off by at most (K + 1) u times the sum of the
    /// magnitudes of its products and of the addend. The separate operations have the same bound.
    #[serde(default = "exact", skip_serializing_if = "Clone::clone")]
    pub exact: bool,
}

fn exact() -> bool {
    true
}

/// What an operation is in a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// What runs first.
    Producer,
    /// What follows.
    Link,
    /// What runs last.
    Consumer,
}

/// One operation of a region.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Link {
    /// The operation.
    pub kind: Kind,
    /// The values that it reads.
    pub operands: SmallVec<[usize; 4]>,
}

impl Link {
    /// The operation on the first values.
    pub fn first(kind: &Kind, operands: usize) -> Link {
        Link { kind: kind.clone(), operands: (0..operands).collect() }
    }

    /// The same operation on other values.
    pub fn renamed(&self, rename: impl Fn(usize) -> usize) -> Link {
        let operands = self.operands.iter().map(|&v| rename(v)).collect();
        Link { kind: self.kind.clone(), operands }
    }

    /// Its operands, out of these values.
    pub fn of<'a>(&self, values: &'a [Meta]) -> SmallVec<[&'a Meta; 8]> {
        self.operands.iter().map(|&v| &values[v]).collect()
    }

    fn family(&self) -> &dyn Family {
        self.kind.family()
    }
}

impl Region {
    /// A region of links alone.
    pub fn of_links(inputs: usize, links: Vec<Link>, outputs: Vec<usize>) -> Region {
        Region { inputs, producer: None, links, consumer: None, outputs, exact: true }
    }

    /// All operations, in order.
    pub fn operations(&self) -> impl Iterator<Item = &Link> {
        self.parts().map(|(_, link)| link)
    }

    /// All operations, in order, and what each is in the region.
    pub fn parts(&self) -> impl Iterator<Item = (Part, &Link)> {
        let producer = self.producer.as_deref().into_iter().map(|link| (Part::Producer, link));
        let links = self.links.iter().map(|link| (Part::Link, link));
        let consumer = self.consumer.as_deref().into_iter().map(|link| (Part::Consumer, link));
        producer.chain(links).chain(consumer)
    }

    /// The number of results of the producer: 0 or 1.
    fn made(&self) -> usize {
        usize::from(self.producer.is_some())
    }

    /// The metas of all values.
    ///
    /// # Errors
    /// Errors of the operations' own inference; [`Error::Value`] for an operation that cannot stand
    /// where it does, and for values that do not exist.
    pub fn values(&self, inputs: &[&Meta]) -> Result<Vec<Meta>> {
        let (got, want) = (inputs.len(), self.inputs);
        crate::ensure!(got == want, Error::arity(self.name(), got, want));
        let mut values: Vec<Meta> = inputs.iter().map(|&meta| meta.clone()).collect();
        for (part, link) in self.parts() {
            let knows = link.operands.iter().all(|&v| v < values.len());
            crate::ensure!(knows, self.refusal(link, "operands among the values before it"));
            let results = link.family().infer(&link.of(&values))?;
            self.check_part(part, link, &results)?;
            values.extend(results);
        }
        self.check_outputs(values.len())?;
        Ok(values)
    }

    /// Whether an operation with these results may be this part.
    fn check_part(&self, part: Part, link: &Link, results: &[Meta]) -> Result<()> {
        let locality = link.family().locality();
        let effects = link.family().effects();
        let is_alone = effects == Effects::PURE && results.len() == 1;
        let (fits, want) = match part {
            Part::Producer => {
                let want = "one result, of inputs that nothing else reads";
                (is_alone && self.owns_inputs(link), want)
            }
            Part::Link => {
                let is_local = is_alone && locality != Locality::All;
                (is_local, "an operation on elements, or on rows along the last axis")
            }
            Part::Consumer if self.reduction().is_some() => {
                let last = self.inputs + self.links.len();
                let reduces = self.producer.is_none() && link.operands[..] == [last - 1];
                (reduces && last > self.inputs, "a reduction of the last of the links before it")
            }
            Part::Consumer => {
                let updates = !effects.state.is_empty() && locality == Locality::Element;
                (updates && self.keeps_places(link), "an update of inputs at its own places")
            }
        };
        crate::ensure!(fits, self.refusal(link, want));
        Ok(())
    }

    fn owns_inputs(&self, producer: &Link) -> bool {
        let is_own = |v: &usize| producer.operands.contains(v);
        let mut rest = self.operations().skip(1);
        producer.operands.iter().all(|&v| v < self.inputs)
            && !rest.any(|link| link.operands.iter().any(is_own))
    }

    fn keeps_places(&self, consumer: &Link) -> bool {
        consumer.operands.iter().enumerate().all(|(i, &v)| v == i || v >= self.inputs)
    }

    fn check_outputs(&self, values: usize) -> Result<()> {
        let results = values - self.inputs;
        let before = self.made() + self.links.len();
        let last = if self.consumer.is_some() { before } else { results.saturating_sub(1) };
        let (first, rest) = self.outputs.split_at((results - last).min(self.outputs.len()));
        let fits = results > 0
            && first.iter().copied().eq(last..results)
            && rest.iter().all(|&output| output < last)
            && rest.iter().rev().skip(1).all(|&output| output >= self.made())
            && (1..rest.len()).all(|o| !rest[..o].contains(&rest[o]));
        let got = || format!("{results} results, of which {:?} are outputs", self.outputs);
        let want = "the results of the last operation as the first outputs, the producer's as the \
                    last, each once";
        crate::ensure!(fits, Error::value(self.name(), got(), want));
        Ok(())
    }

    fn refusal(&self, link: &Link, want: &'static str) -> Error {
        Error::value(self.name(), link.family().name(), want)
    }

    /// Whether any link works on whole rows.
    pub fn has_rows(&self) -> bool {
        self.links.iter().any(|link| link.family().locality() == Locality::Row)
    }

    /// The reduction that it ends with.
    pub fn reduction(&self) -> Option<&Reduce> {
        match &self.consumer.as_deref()?.kind {
            Kind::Reduce(reduction) => Some(reduction),
            _ => None,
        }
    }

    /// The output that the last link's result is, in a region that ends with a reduction.
    pub fn keeps_last(&self) -> Option<usize> {
        self.outputs.iter().position(|&output| output + 1 == self.links.len())
    }

    /// The links before a reduction, as a region. Its outputs are the last link's result, and the
    /// other outputs before the reduction.
    pub fn before_consumer(&self) -> Region {
        let last = self.links.len() - 1;
        let others = self.outputs[1..].iter().copied().filter(|&output| output != last);
        let outputs = std::iter::once(last).chain(others).collect();
        Region::of_links(self.inputs, self.links.clone(), outputs)
    }

    /// What follows the producer, as a region whose first input is the producer's result, followed
    /// by the inputs that the producer does not read; and these inputs.
    pub fn behind(&self, producer: &Link) -> (Region, SmallVec<[usize; 8]>) {
        let others = (0..self.inputs).filter(|i| !producer.operands.contains(i));
        let others: SmallVec<[usize; 8]> = others.collect();
        let inputs = 1 + others.len();
        let renamed = |v: usize| match others.iter().position(|&other| other == v) {
            Some(at) => 1 + at,
            None if v == self.inputs => 0,
            None => v - self.inputs - 1 + inputs,
        };
        let outputs = self.outputs.iter().filter_map(|output| output.checked_sub(1)).collect();
        let consumer = self.consumer.iter().map(|link| Box::new(link.renamed(renamed))).next();
        let links = self.links.iter().map(|link| link.renamed(renamed)).collect();
        (Region { inputs, producer: None, links, consumer, outputs, exact: true }, others)
    }
}

/// Producers, and the names of regions that start with them.
const CHAINS: [(&str, &str); 7] = [
    ("matmul", "matmul_chain"),
    ("conv1d", "conv1d_chain"),
    ("conv2d", "conv2d_chain"),
    ("conv3d", "conv3d_chain"),
    ("conv1d_grad_input", "conv1d_grad_input_chain"),
    ("conv2d_grad_input", "conv2d_grad_input_chain"),
    ("conv3d_grad_input", "conv3d_grad_input_chain"),
];

/// The names of regions that end with a reduction.
const fn reducing(f: ReduceFn) -> &'static str {
    match f {
        ReduceFn::Sum => "chain_sum",
        ReduceFn::Mean => "chain_mean",
        ReduceFn::Max => "chain_max",
        ReduceFn::Min => "chain_min",
        ReduceFn::Prod => "chain_prod",
        ReduceFn::Argmax => "chain_argmax",
        ReduceFn::Argmin => "chain_argmin",
        ReduceFn::Any => "chain_any",
        ReduceFn::All => "chain_all",
    }
}

impl Catalog for Region {
    fn names() -> Vec<&'static str> {
        let chains = CHAINS.iter().map(|(_, chain)| *chain).chain(ReduceFn::ALL.map(reducing));
        ["chain", "matmul_add", "matmul_update"].into_iter().chain(chains).collect()
    }
}

/// Pairs of an input and an output.
const fn pairs(output: usize) -> [(usize, usize); 8] {
    let o = output;
    [(0, o), (1, o), (2, o), (3, o), (4, o), (5, o), (6, o), (7, o)]
}

/// Pairs of an input and the first output, or the second.
const FIRST: [(usize, usize); 8] = pairs(0);
const SECOND: [(usize, usize); 8] = pairs(1);

impl Family for Region {
    fn name(&self) -> &'static str {
        let made = self.producer.as_deref().map(|link| link.family().name());
        if let Some(reduction) = self.reduction() {
            return reducing(reduction.f);
        }
        match (made, self.consumer.is_some(), self.exact) {
            (None, false, _) => "chain",
            (Some("matmul"), true, _) => "matmul_update",
            (Some("matmul"), false, false) => "matmul_add",
            (Some(made), false, _) => {
                CHAINS.iter().find(|(name, _)| *name == made).map_or("region", |(_, chain)| chain)
            }
            _ => "region",
        }
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let values = self.values(inputs)?;
        Ok(self.outputs.iter().map(|&output| values[self.inputs + output].clone()).collect())
    }

    fn effects(&self) -> Effects {
        self.consumer.as_deref().map_or(Effects::PURE, |link| link.family().effects())
    }

    fn checked(&self) -> &'static [usize] {
        self.consumer.as_deref().map_or(&[], |link| link.family().checked())
    }

    /// Only the last link writes the first output, once all the others have read their part; but
    /// the producer's inputs, the last ones or the first ones, are read until the end. Before a
    /// reduction, the last link may write the second output.
    fn in_place(&self) -> &'static [(usize, usize)] {
        if self.reduction().is_some() {
            let end = self.inputs.min(SECOND.len());
            return if self.keeps_last() == Some(1) { &SECOND[..end] } else { &[] };
        }
        let read = self.producer.iter().flat_map(|link| link.operands.iter().copied());
        let free = match (read.clone().min(), read.max()) {
            (Some(0), Some(last)) => last + 1..self.inputs,
            (Some(first), _) => 0..first,
            _ => 0..self.inputs,
        };
        let end = free.end.min(FIRST.len());
        if self.consumer.is_some() { &[] } else { &FIRST[free.start.min(end)..end] }
    }

    fn region(&self) -> Option<&Region> {
        Some(self)
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        let values = self.values(&io[..self.inputs]).unwrap_or_default();
        let mut at = self.inputs;
        let mut flops = |link: &Link| {
            let count = link.family().effects().state.len().max(1);
            at += count;
            let io = link.operands.iter().copied().chain(at - count..at);
            let io: SmallVec<[&Meta; 8]> = io.filter_map(|v| values.get(v)).collect();
            if values.is_empty() { 0 } else { link.family().cost(&io).flops }
        };
        let made: Option<u64> = self.producer.as_deref().map(&mut flops);
        let links = self.links.iter().map(&mut flops).fold(0, u64::saturating_add);
        let updates = self.consumer.as_deref().map_or(0, flops);
        let behind = if made.is_some() && self.exact { links } else { 0 };
        let flops = made.unwrap_or(0).saturating_add(links).saturating_add(updates);
        Cost { behind, ..Cost::of(io, flops) }
    }
}
