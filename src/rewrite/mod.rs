//! Replaces groups of recorded operations by equivalent ones that take less time and memory. There
//! is one file per rule; each rule keeps results bitwise equal, except those that must be allowed
//! to change rounding.

mod batch_norm;
mod cast_round_trip;
mod cse;
mod dce;
mod fold_affine;
mod fold_batch_norm;
mod fold_gather;
mod functionalize;
mod fusion;
mod hoist;
mod log_softmax;
mod matching;
mod pack;
#[cfg(test)]
mod tests;

use crate::error::Result;
use crate::graph::draft::Draft;
use crate::kernels::Fusing;
use crate::ops::Kind;
use crate::ops::binary::{Binary, BinaryFn};
pub use hoist::Constants;

/// The thresholds from which rules pay off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Thresholds for constants.
    pub constants: hoist::Limits,
    /// Thresholds for fusing operations into one pass over memory; None for the target's.
    pub chains: Option<Fusing>,
}

impl Limits {
    /// The default thresholds.
    pub const DEFAULT: Limits = Limits { constants: hoist::Limits::DEFAULT, chains: None };
    /// No thresholds: apply a rule wherever it fits.
    pub const NONE: Limits = Limits { constants: hoist::Limits::NONE, chains: Some(Fusing::NONE) };
}

/// What rewriting may do.
#[derive(Clone, Copy, Debug)]
pub struct Allowed {
    /// Whether results may differ within rounding.
    pub rounds: bool,
    /// Whether results that are the same in every run may be cached.
    pub keeps: bool,
    /// The thresholds of the rules.
    pub limits: Limits,
}

/// Applies all rules. Returns the constants, which are computed before the first run and recomputed
/// when their inputs have been written.
///
/// # Errors
/// Any error of inferring an operation.
pub fn rewrite(draft: &mut Draft, allowed: Allowed) -> Result<Option<Constants>> {
    functionalize::apply(draft)?;
    cse::apply(draft);
    cast_round_trip::apply(draft)?;
    dce::apply(draft);
    if allowed.rounds {
        log_softmax::apply(draft)?;
    }
    if allowed.rounds && allowed.keeps {
        fold_batch_norm::apply(draft)?;
        fold_affine::apply(draft)?;
        fold_gather::apply(draft, allowed.limits.constants)?;
    }
    batch_norm::apply(draft)?;
    if allowed.rounds {
        fusion::gate::apply(draft)?;
    }
    fusion::update::apply(draft)?;
    let limits = allowed.limits;
    let chains = limits.chains.unwrap_or_else(|| draft.target().fusing());
    let constants = if allowed.keeps { constants(draft, limits.constants)? } else { None };
    if allowed.rounds {
        fusion::sum::apply(draft, chains)?;
    }
    fusion::links::apply(draft, chains)?;
    fusion::producer::apply(draft, chains)?;
    fusion::reduction::apply(draft, chains)?;
    Ok(constants)
}

/// Moves operations whose results are the same in every run out of the runs.
fn constants(draft: &mut Draft, limits: hoist::Limits) -> Result<Option<Constants>> {
    pack::apply(draft)?;
    let constants = hoist::take(draft, limits);
    pack::undo(draft)?;
    Ok(constants)
}

const ADD: Kind = Kind::Binary(Binary { f: BinaryFn::Add });
