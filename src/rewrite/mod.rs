//! Replaces groups of recorded operations by equivalent ones that take less time and memory. There
//! is one file per rule; each rule keeps results bitwise equal, except those that must be allowed
//! to change rounding.

mod accumulate;
mod batch_norm;
mod chain;
mod common;
mod constant;
mod dead;
mod epilogue;
mod fold;
mod matmul_update;
mod pack;
mod rename;
mod softmax;
#[cfg(test)]
mod tests;

use smallvec::SmallVec;

use crate::error::Result;
use crate::graph::draft::Draft;
use crate::graph::{Op, Place, Role};
use crate::kernels::Fusing;
use crate::ops::Kind;
use crate::ops::binary::{Binary, BinaryFn};
pub use constant::Constants;

/// The thresholds from which rules pay off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Thresholds for constants.
    pub constants: constant::Limits,
    /// Thresholds for fusing operations into one pass over memory; None for the target's.
    pub chains: Option<Fusing>,
}

impl Limits {
    /// The default thresholds.
    pub const DEFAULT: Limits = Limits { constants: constant::Limits::DEFAULT, chains: None };
    /// No thresholds: apply a rule wherever it fits.
    pub const NONE: Limits =
        Limits { constants: constant::Limits::NONE, chains: Some(Fusing::NONE) };
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
    rename::apply(draft);
    common::apply(draft);
    dead::apply(draft);
    if allowed.rounds {
        softmax::apply(draft)?;
    }
    if allowed.rounds && allowed.keeps {
        fold::apply(draft)?;
    }
    batch_norm::apply(draft)?;
    matmul_update::apply(draft)?;
    let limits = allowed.limits;
    let chains = limits.chains.unwrap_or_else(|| draft.target().fusing());
    let constants = if allowed.keeps { constants(draft, limits.constants)? } else { None };
    if allowed.rounds {
        accumulate::apply(draft, chains)?;
    }
    chain::apply(draft, chains)?;
    epilogue::apply(draft, chains)?;
    Ok(constants)
}

/// Moves operations whose results are the same in every run out of the runs.
fn constants(draft: &mut Draft, limits: constant::Limits) -> Result<Option<Constants>> {
    pack::apply(draft)?;
    let constants = constant::take(draft, limits);
    pack::undo(draft)?;
    Ok(constants)
}

const ADD: Kind = Kind::Binary(Binary { f: BinaryFn::Add });

/// Replaces the operation of step `n`, keeping its outputs.
fn remake(draft: &mut Draft, n: usize, kind: Kind, inputs: SmallVec<[Place; 4]>) -> Result<()> {
    let call = draft.infer(kind, &inputs)?;
    let step = draft.step(n).expect("the caller found it");
    let (outputs, origin) = (step.outputs.clone(), step.origin);
    draft.replace(n, Op { call, inputs, outputs, origin });
    Ok(())
}

/// The bytes of the step's inputs whose lifetimes would have to be extended to step `n` if it ran
/// there.
fn kept_longer(draft: &Draft, step: &Op, n: usize) -> usize {
    let kept = step.inputs.iter().enumerate().filter(|&(i, place)| {
        let is_first = step.inputs[..i].iter().all(|other| other.block != place.block);
        let last = draft.readers(place.block).last();
        let is_needed_anyway =
            last.is_some_and(|last| !draft.is_before(last, n) || draft.is_right_before(last, n));
        is_first && draft.role(place.block) == Role::Temporary && !is_needed_anyway
    });
    kept.map(|(_, place)| draft.bytes(place.block)).sum()
}

/// Whether no step before `n` reads an output, and step `n` reads all of it or nothing.
fn is_seen_whole(draft: &Draft, output: &Place, n: usize) -> bool {
    let Some(step) = draft.step(n) else { return false };
    let is_part = |input: &&Place| input.block == output.block && *input != output;
    draft.readers(output.block).first().is_none_or(|first| !draft.is_before(first, n))
        && !step.inputs.iter().any(|input| is_part(&input))
}

/// Appends the places that are not yet among the inputs.
fn add_new<'a>(inputs: &mut SmallVec<[Place; 4]>, places: impl Iterator<Item = &'a Place>) {
    for place in places {
        if !inputs.contains(place) {
            inputs.push(place.clone());
        }
    }
}

/// Whether step `n`, if it also reads these factors, writes nothing that it reads: it creates its
/// outputs, or writes its only output exactly in place of an input.
fn writes_apart(draft: &Draft, n: usize, factors: &[Place]) -> bool {
    let Some(step) = draft.step(n) else { return false };
    let is_new = |output: &Place| draft.maker(output) == Some(n);
    let is_apart = |output: &Place| {
        let read = step.inputs.iter().filter(|&place| place != output).chain(factors);
        step.inputs.contains(output) && read.into_iter().all(|place| place.block != output.block)
    };
    step.outputs.iter().all(is_new) || step.outputs.len() == 1 && is_apart(&step.outputs[0])
}
