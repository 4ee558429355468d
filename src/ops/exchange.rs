//! Exchanges between processes, as two operations: one that starts, and one that waits for the
//! result. What stands between them in a recording runs meanwhile.

use serde::{Deserialize, Serialize};

use super::{Effects, Family, Kind, Meta, Metas, exactly};
use crate::comm::Exchange;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::Shape;

catalog!(ExchangeFinish => "exchange_finish", ExchangeStart => "exchange_start");

impl Kind {
    /// Whether it exchanges something between processes.
    pub fn is_exchange(&self) -> bool {
        matches!(self, Kind::ExchangeStart(_) | Kind::ExchangeFinish(_))
    }
}

/// Hands this process's tensors, if the exchange takes any, to the group's thread, which copies them:
/// one after the other, and for a reduce-scatter zeros up to a multiple of the number of ranks.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct ExchangeStart {
    /// The group ([`crate::comm::group`]).
    pub group: u64,
    /// The number of processes.
    pub ranks: usize,
    /// What [`ExchangeFinish`] names it by; free again after that.
    pub slot: u32,
    /// What is exchanged.
    pub exchange: Exchange,
    /// What is received where nothing is given: the type, and the number of elements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receives: Option<(DType, usize)>,
}

impl ExchangeStart {
    /// The type and number of all elements that this rank gives, or receives where it gives none.
    pub fn elements(&self, inputs: &[&Meta]) -> (DType, usize) {
        let Some(first) = inputs.first() else {
            return self.receives.unwrap_or((DType::UInt8, 0));
        };
        let count = inputs.iter().map(|x| x.numel()).sum::<usize>();
        match self.exchange {
            Exchange::ReduceScatter { .. } => (first.dtype, count.next_multiple_of(self.ranks)),
            _ => (first.dtype, count),
        }
    }

    /// Checks that these tensors can be exchanged together.
    fn check(&self, inputs: &[&Meta]) -> Result<()> {
        let name = self.exchange.name();
        crate::ensure!(!inputs.is_empty(), Error::value(name, "no tensors", "at least one"));
        let (dtype, count) = self.elements(inputs);
        for x in inputs {
            let got = || format!("strides {:?}", x.strides);
            crate::ensure!(x.is_contiguous(), Error::value(name, got(), "a contiguous tensor"));
            let dtypes = || Error::dtype(name, [dtype, x.dtype], "one dtype");
            crate::ensure!(x.dtype == dtype, dtypes());
        }
        self.exchange.check(dtype)?;
        let fits = self.exchange != Exchange::AllToAll || count.is_multiple_of(self.ranks);
        let want = || format!("elements that {} ranks share equally", self.ranks);
        crate::ensure!(fits, Error::shape(name, inputs.iter().map(|x| &x.shape), want()));
        Ok(())
    }
}

impl Family for ExchangeStart {
    fn name(&self) -> &'static str {
        "exchange_start"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        match self.exchange {
            Exchange::Receive { .. } | Exchange::Barrier => {
                let [] = exactly(self.exchange.name(), inputs)?;
            }
            _ => {
                self.check(inputs)?;
            }
        }
        Ok(Metas::new())
    }

    fn effects(&self) -> Effects {
        Effects::OUTSIDE
    }

    moves_only!();
}

/// Waits for the exchange of a slot; the results, row-major, are its elements one after the other.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct ExchangeFinish {
    /// The group ([`crate::comm::group`]).
    pub group: u64,
    /// The slot of its [`ExchangeStart`].
    pub slot: u32,
    /// What is exchanged.
    pub exchange: Exchange,
    /// The bytes that this rank receives, of which there may be more than the results have.
    pub bytes: usize,
    /// The shapes of the results.
    pub results: Vec<Shape>,
    /// Their type.
    pub dtype: DType,
}

impl Family for ExchangeFinish {
    fn name(&self) -> &'static str {
        "exchange_finish"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [] = exactly(self.exchange.name(), inputs)?;
        let (name, mut bytes) = (self.exchange.name(), 0_usize);
        let mut made = Metas::new();
        for shape in &self.results {
            bytes = bytes.saturating_add(shape.checked_numel(name)? * self.dtype.size());
            made.push(Meta::new(self.dtype, shape.clone()));
        }
        let want = || format!("shapes of at most {} elements", self.bytes / self.dtype.size());
        crate::ensure!(bytes <= self.bytes, Error::shape(name, &self.results, want()));
        Ok(made)
    }

    fn effects(&self) -> Effects {
        Effects::OUTSIDE
    }

    moves_only!();
}
