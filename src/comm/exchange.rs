//! What is exchanged, as data.

use serde::{Deserialize, Serialize};

use crate::dtype::DType;
use crate::error::{Error, Result};

/// How the ranks' elements become one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fold {
    /// Their sum, added in the order of the ranks.
    Sum,
    /// The sum divided by the number of ranks.
    Mean,
    /// The largest; NaN if there is one.
    Max,
    /// The smallest; NaN if there is one.
    Min,
}

/// The form in which elements of a reduction travel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wire {
    /// As they are.
    #[default]
    Dense,
    /// Rounded to float16; float32 alone. They are added in float32, and the sum is rounded once.
    Float16,
    /// Rounded to bfloat16, as with float16.
    Bfloat16,
    /// Those that are not zero, with their distances; float32 sums and means alone. As a whole
    /// where that takes fewer bytes.
    Sparse,
}

/// An exchange between all ranks of a group, or between two of them.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Exchange {
    /// Each rank receives the reduction of all.
    AllReduce {
        /// How.
        #[serde(rename = "reduce")]
        fold: Fold,
        /// In which form.
        #[serde(default)]
        wire: Wire,
    },
    /// Rank r receives part r of the reduction, of as many equal parts as there are ranks.
    ReduceScatter {
        /// How.
        #[serde(rename = "reduce")]
        fold: Fold,
    },
    /// Each rank receives those of rank 0, 1, ... in order.
    AllGather {
        /// A number that all ranks must give, so that shares of one thing are not taken for those of
        /// another; 0 where nothing has numbers.
        #[serde(default)]
        of: u64,
    },
    /// Rank r receives part r of each rank, in order.
    AllToAll,
    /// All receive the root's.
    Broadcast {
        /// The rank that sends.
        root: usize,
    },
    /// To another rank.
    Send {
        /// The rank that receives.
        to: usize,
    },
    /// From another rank.
    Receive {
        /// The rank that sends.
        from: usize,
    },
    /// Nothing: each rank waits until all have come.
    Barrier,
}

impl Exchange {
    /// The field's name for it.
    pub fn name(&self) -> &'static str {
        match self {
            Exchange::AllReduce { .. } => "all_reduce",
            Exchange::ReduceScatter { .. } => "reduce_scatter",
            Exchange::AllGather { .. } => "all_gather",
            Exchange::AllToAll => "all_to_all",
            Exchange::Broadcast { .. } => "broadcast",
            Exchange::Send { .. } => "send",
            Exchange::Receive { .. } => "receive",
            Exchange::Barrier => "barrier",
        }
    }

    /// Whether it is between two ranks.
    pub fn is_pair(&self) -> bool {
        matches!(self, Exchange::Send { .. } | Exchange::Receive { .. })
    }

    /// The same in words for this many elements, as other ranks are told.
    pub fn describe(&self, count: usize, dtype: DType) -> String {
        let name = self.name();
        match self {
            Exchange::AllReduce { fold, wire } => {
                format!("{name} of {count} {dtype:?} ({fold:?}, {wire:?})")
            }
            Exchange::ReduceScatter { fold } => format!("{name} of {count} {dtype:?} ({fold:?})"),
            Exchange::AllGather { of: of @ 1.. } => {
                format!("{name} of {count} {dtype:?} in bucket {of}")
            }
            Exchange::Broadcast { root } => format!("{name} of {count} {dtype:?} from rank {root}"),
            Exchange::Barrier => name.into(),
            // Both ends have the same words.
            Exchange::Send { .. } | Exchange::Receive { .. } => {
                format!("message of {count} {dtype:?}")
            }
            _ => format!("{name} of {count} {dtype:?}"),
        }
        .to_lowercase()
    }

    /// Checks that elements of this type can be exchanged so.
    ///
    /// # Errors
    /// [`Error::DType`] for the mean of integers, sums of bools, and short forms of anything but
    /// float32; [`Error::Value`] for the largest or smallest of elements that travel sparsely.
    pub fn check(&self, dtype: DType) -> Result<()> {
        let (fold, wire) = match *self {
            Exchange::AllReduce { fold, wire } => (fold, wire),
            Exchange::ReduceScatter { fold } => (fold, Wire::Dense),
            _ => return Ok(()),
        };
        let name = self.name();
        let is_sum = matches!(fold, Fold::Sum | Fold::Mean);
        let refused = |want: &'static str| Err(Error::dtype(name, [dtype], want));
        match (fold, wire) {
            (Fold::Mean, _) if !dtype.is_float() => refused("a float dtype for a mean"),
            _ if is_sum && dtype == DType::Bool => refused("numbers for a sum"),
            (_, Wire::Dense) => Ok(()),
            _ if dtype != DType::Float32 => refused("float32 for a short form on the wire"),
            (_, Wire::Sparse) if !is_sum => {
                Err(Error::value(name, format!("{fold:?} of sparse elements"), "sum or mean"))
            }
            _ => Ok(()),
        }
    }

    /// Bytes of the result on this rank, of `bytes` that each rank gives.
    pub fn received(&self, bytes: usize, ranks: usize) -> usize {
        match self {
            Exchange::AllGather { .. } => bytes * ranks,
            Exchange::ReduceScatter { .. } => bytes / ranks,
            Exchange::Send { .. } | Exchange::Barrier => 0,
            _ => bytes,
        }
    }
}
