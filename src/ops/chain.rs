//! Chains of elementwise and row-wise operations, which graphs run in one pass over memory.

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::{Cost, Family, Kind, Meta, Metas, Reach, Region};
use crate::error::{Error, Result};

/// Elementwise or row-wise operations in sequence, bit-identical to running them separately.
/// Intermediate results take the memory of only a few rows.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Chain {
    /// The number of inputs.
    pub inputs: usize,
    /// The operations, in order.
    pub links: Vec<Link>,
    /// The links whose results are outputs; the last link comes first.
    pub outputs: Vec<usize>,
}

/// One operation of a chain.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Link {
    /// The operation.
    pub kind: Kind,
    /// Its operands: indices of the chain's inputs, followed by those of earlier links.
    pub operands: SmallVec<[usize; 4]>,
}

impl Link {
    /// The same link with its operands renumbered.
    pub fn renamed(&self, rename: impl Fn(usize) -> usize) -> Link {
        let operands = self.operands.iter().map(|&v| rename(v)).collect();
        Link { kind: self.kind.clone(), operands }
    }

    /// Which elements of the operands an element of this link's result depends on.
    fn reach(&self, result: &Meta) -> Reach {
        self.kind.family().reach(result.shape.rank())
    }
}

catalog!(Chain => "chain");

impl Chain {
    /// The metas of the inputs and of all links' results.
    ///
    /// # Errors
    /// Errors of the links' own inference; [`Error::Value`] for an operation that cannot be a link.
    pub fn values(&self, inputs: &[&Meta]) -> Result<Vec<Meta>> {
        let mut values: Vec<Meta> = inputs.iter().map(|&meta| meta.clone()).collect();
        for link in &self.links {
            let operands: Vec<&Meta> = link.operands.iter().map(|&v| &values[v]).collect();
            let result = link.kind.family().infer(&operands)?.into_iter().next();
            let result = result.filter(|result| link.reach(result) != Reach::All);
            let want = "an operation on elements, or on rows along the last axis";
            let none = || Error::value(self.name(), link.kind.family().name(), want);
            values.push(result.ok_or_else(none)?);
        }
        Ok(values)
    }

    /// Whether any link works on whole rows; `values` are those of [`Chain::values`].
    pub fn has_rows(&self, values: &[Meta]) -> bool {
        let mut links = self.links.iter().zip(&values[self.inputs..]);
        links.any(|(link, result)| link.reach(result) == Reach::Row)
    }

    /// Checks the number of inputs and all indices.
    pub(super) fn check(&self, inputs: &[&Meta]) -> Result<()> {
        let (got, want) = (inputs.len(), self.inputs.to_string());
        crate::ensure!(got == self.inputs, Error::Arity { op: self.name().into(), got, want });
        let count = self.links.len();
        let knows = |(i, link): (usize, &Link)| link.operands.iter().all(|&v| v < self.inputs + i);
        let fits = self.links.iter().enumerate().all(knows)
            && self.outputs.first().is_some_and(|&last| last + 1 == count)
            && self.outputs[1..].iter().all(|&o| o + 1 < count);
        let got = || format!("{count} links and outputs {:?}", self.outputs);
        let want = "links of known operands, the last one as the first output";
        crate::ensure!(fits, Error::value(self.name(), got(), want));
        Ok(())
    }
}

/// Pairs of an input and the first output.
const FIRST: [(usize, usize); 8] = [(0, 0), (1, 0), (2, 0), (3, 0), (4, 0), (5, 0), (6, 0), (7, 0)];

/// Pairs of each of the chain's inputs and the first output: only the last link writes that output,
/// once all the others have read their part.
pub(super) fn in_place(inputs: usize) -> &'static [(usize, usize)] {
    &FIRST[..inputs.min(FIRST.len())]
}

impl Family for Chain {
    fn name(&self) -> &'static str {
        "chain"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        self.check(inputs)?;
        let values = self.values(inputs)?;
        Ok(self.outputs.iter().map(|&o| values[self.inputs + o].clone()).collect())
    }

    fn in_place(&self) -> &'static [(usize, usize)] {
        in_place(self.inputs)
    }

    fn region(&self) -> Option<Region<'_>> {
        let Chain { inputs, links, outputs } = self;
        Some(Region { producer: None, inputs: *inputs, links, outputs, keeps: false })
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        let values = self.values(&io[..self.inputs]).unwrap_or_default();
        let flops = self.links.iter().zip(self.inputs..).map(|(link, result)| {
            let operands = link.operands.iter().copied().chain([result]);
            let io: Vec<&Meta> = operands.filter_map(|v| values.get(v)).collect();
            link.kind.family().cost(&io).flops
        });
        Cost {
            flops: flops.sum(),
            behind: 0,
            bytes: io.iter().map(|meta| meta.bytes() as u64).sum(),
        }
    }
}
