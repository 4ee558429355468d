//! Random numbers: fills, dropout, and the generator's advance.
//!
//! The generator (Philox; Salmon et al. 2011) is a function of a key and a position, both in a state
//! tensor. Operations only read it, from their own offset on; the engine advances the position past
//! the blocks they used.

mod advance;
mod dropout;

pub use advance::Advance;
pub use dropout::{Dropout, DropoutGrad};

use serde::{Deserialize, Serialize};

use super::{Cost, Effects, Family, Kind, Meta, Metas, Real, exactly};
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::shape::Shape;

/// The distribution of random numbers.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// Uniform from `low` to just below `high` (`low` itself where they are equal).
    Uniform {
        /// The lowest value.
        low: Real,
        /// The exclusive upper bound.
        high: Real,
    },
    /// The normal distribution.
    Normal {
        /// The mean.
        mean: Real,
        /// The standard deviation, not negative.
        std: Real,
    },
    /// 1 with probability `p`, else 0.
    Bernoulli {
        /// The probability.
        p: Real,
    },
}

catalog!(Random => "random");

impl Distribution {
    /// Checks that the parameters are valid for tensors of this dtype.
    fn check(&self, dtype: DType) -> Result<()> {
        let holds = |value: f64| {
            crate::dispatch!(float dtype, T => Element::to_f64(<T as Element>::from_f64(value)),
                else => value)
            .is_finite()
        };
        let (good, want) = match *self {
            Distribution::Uniform { low: Real(low), high: Real(high) } => {
                (holds(low) && holds(high) && low <= high, "low <= high, finite in its dtype")
            }
            Distribution::Normal { mean: Real(mean), std: Real(std) } => (
                holds(mean) && holds(std) && std >= 0.0,
                "a mean and std >= 0, finite in its dtype",
            ),
            Distribution::Bernoulli { p: Real(p) } => {
                ((0.0..=1.0).contains(&p), "a probability from 0 to 1")
            }
        };
        crate::ensure!(good, Error::value("random", format!("{self:?}"), want));
        Ok(())
    }
}

/// `([state])` -> a row-major tensor of independent random numbers. Any dtype for Bernoulli
/// numbers, floats for the others.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Random {
    /// The distribution.
    pub dist: Distribution,
    /// The result's shape.
    pub shape: Shape,
    /// The result's dtype.
    pub dtype: DType,
    /// The first 128-bit block used, counted from the generator's position.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub offset: u64,
}

impl Family for Random {
    fn name(&self) -> &'static str {
        "random"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [state] = exactly(self.name(), inputs)?;
        check_state(self.name(), state)?;
        let any = matches!(self.dist, Distribution::Bernoulli { .. });
        crate::ensure!(
            any || self.dtype.is_float(),
            Error::dtype(self.name(), [self.dtype], "a float dtype")
        );
        self.dist.check(self.dtype)?;
        self.shape.checked_numel(self.name())?;
        Ok(smallvec::smallvec![Meta::new(self.dtype, self.shape.clone())])
    }

    fn effects(&self) -> Effects {
        Effects::draws_from(0)
    }

    fn draws(&self, _inputs: &[&Meta]) -> u64 {
        let bernoulli = matches!(self.dist, Distribution::Bernoulli { .. });
        let two_words = self.dtype == DType::Float64 && !bernoulli;
        (self.shape.numel() as u64).div_ceil(if two_words { 2 } else { 4 })
    }

    fn drawing_from(&self, offset: u64) -> Option<Kind> {
        Some(Random { offset, ..self.clone() }.into())
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        Cost::elementwise(&io[1..], 24)
    }
}

/// Whether an operation starts at the generator's position, as eager ones do.
pub(in crate::ops) fn is_zero(offset: &u64) -> bool {
    *offset == 0
}

/// Checks that a meta is that of a generator's state.
pub(in crate::ops) fn check_state(op: &'static str, state: &Meta) -> Result<()> {
    let fits = *state == Meta::new(DType::Int64, [2]);
    crate::ensure!(fits, Error::shape(op, [&state.shape], "an int64 state of shape (2,)"));
    Ok(())
}
