//! Matrix products and convolutions fused with the chain of operations that follows, as graphs run
//! them: the chain finds each block of the result in the cache.

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::chain::{Chain, in_place};
use super::conv::{Conv2d, Conv2dGradInput};
use super::gemm::Matmul;
use super::{Catalog, Cost, Family, Kind, Meta, Metas, Region};
use crate::error::{Error, Result};

/// A product or convolution fused with a chain whose first input is its result. The inputs are the
/// chain's other inputs, followed by those of the producer; the outputs are those of the chain,
/// followed by the producer's result if it `keeps` that. Bit-identical to running the two in turn.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Epilogue {
    /// The product or convolution.
    pub producer: Producer,
    /// The operations on its result.
    pub chain: Chain,
    /// Whether the producer's result is an output, too.
    pub keeps: bool,
}

/// An operation whose result can be computed in blocks.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Producer {
    Matmul(Matmul),
    Conv2d(Conv2d),
    Conv2dGradInput(Conv2dGradInput),
}

impl Producer {
    /// The operation as a producer, if it can be one.
    pub fn of(kind: &Kind) -> Option<Producer> {
        Some(match kind {
            Kind::Matmul(product) => Producer::Matmul(product.clone()),
            Kind::Conv2d(conv) => Producer::Conv2d(conv.clone()),
            Kind::Conv2dGradInput(conv) => Producer::Conv2dGradInput(conv.clone()),
            _ => return None,
        })
    }

    /// The producer as an operation on its own.
    pub fn kind(&self) -> Kind {
        match self.clone() {
            Producer::Matmul(product) => product.into(),
            Producer::Conv2d(conv) => conv.into(),
            Producer::Conv2dGradInput(conv) => conv.into(),
        }
    }

    fn family(&self) -> &dyn Family {
        match self {
            Producer::Matmul(product) => product,
            Producer::Conv2d(conv) => conv,
            Producer::Conv2dGradInput(conv) => conv,
        }
    }
}

impl Catalog for Epilogue {
    fn names() -> Vec<&'static str> {
        vec!["matmul_chain", "conv2d_chain", "conv2d_grad_input_chain"]
    }
}

impl Epilogue {
    /// How many of the inputs belong to the chain; an error if the chain does not fit them.
    fn others(&self, inputs: &[&Meta]) -> Result<usize> {
        let (got, others) = (inputs.len(), self.chain.inputs.saturating_sub(1));
        let want = || format!("1 or more in the chain, and {others} before those of the product");
        let fits = self.chain.inputs >= 1 && got > others;
        crate::ensure!(fits, Error::Arity { op: self.name().into(), got, want: want() });
        Ok(others)
    }

    /// The values of the chain: its inputs and the results of all links.
    ///
    /// # Errors
    /// The errors of the operations' own inference.
    pub fn values(&self, inputs: &[&Meta]) -> Result<Vec<Meta>> {
        let (others, factors) = inputs.split_at(self.others(inputs)?);
        let made = self.producer.family().infer(factors)?.remove(0);
        let inputs: SmallVec<[&Meta; 8]> =
            std::iter::once(&made).chain(others.iter().copied()).collect();
        self.chain.check(&inputs)?;
        self.chain.values(&inputs)
    }

    /// Inputs and result of the producer.
    pub fn io<'a>(&self, inputs: &[&'a Meta], values: &'a [Meta]) -> SmallVec<[&'a Meta; 4]> {
        inputs[self.chain.inputs - 1..].iter().copied().chain(values.first()).collect()
    }
}

impl Family for Epilogue {
    fn name(&self) -> &'static str {
        match self.producer {
            Producer::Matmul(_) => "matmul_chain",
            Producer::Conv2d(_) => "conv2d_chain",
            Producer::Conv2dGradInput(_) => "conv2d_grad_input_chain",
        }
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let values = self.values(inputs)?;
        let links = self.chain.outputs.iter().map(|link| self.chain.inputs + link);
        let kept = self.keeps.then_some(0);
        Ok(links.chain(kept).map(|v| values[v].clone()).collect())
    }

    fn in_place(&self) -> &'static [(usize, usize)] {
        in_place(self.chain.inputs.saturating_sub(1))
    }

    fn region(&self) -> Option<Region<'_>> {
        let (producer, keeps) = (Some(self.producer.family()), self.keeps);
        self.chain.region().map(|chain| Region { producer, keeps, ..chain })
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        let bytes = io.iter().map(|meta| meta.bytes() as u64).sum();
        let outputs = self.chain.outputs.len() + usize::from(self.keeps);
        let inputs = &io[..io.len() - outputs];
        let Ok(values) = self.values(inputs) else { return Cost { bytes, ..Cost::default() } };
        let made = self.producer.family().cost(&self.io(inputs, &values)).flops;
        let (given, links) = values.split_at(self.chain.inputs);
        let chain: SmallVec<[&Meta; 8]> = given.iter().chain(links.last()).collect();
        let behind = self.chain.cost(&chain).flops;
        Cost { flops: made + behind, behind, bytes }
    }
}
