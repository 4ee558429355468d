//! An operation on tensors of given metas: data alone, with no memory and no kernel.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use rustc_hash::FxHasher;
use smallvec::SmallVec;

use super::{Cost, Effects, Family, Kind, Meta};
use crate::error::{Error, Result};
use crate::view::{self, View};

/// The metas of an operation's outputs, shared with the output tensors.
pub type OutputMetas = SmallVec<[Arc<Meta>; 2]>;

/// An operation and the metas of its tensors. Immutable.
#[derive(Clone)]
pub struct Call {
    /// The kind of operation.
    pub kind: Kind,
    /// Metas of the inputs.
    pub inputs: SmallVec<[Arc<Meta>; 4]>,
    /// Metas of the outputs: inferred, or those of the given outputs.
    pub outputs: OutputMetas,
    /// Its side effects.
    pub effects: Effects,
    are_given: bool,
}

/// What a call is made from: equal parts make equal calls.
#[derive(Clone, Copy)]
pub struct Parts<'a, M: Metas<'a>> {
    /// The kind of operation.
    pub kind: &'a Kind,
    /// The inputs.
    pub inputs: M,
    /// The outputs, if their strides may differ from the inferred ones.
    pub given: Option<M>,
}

/// Tensors of which only the metas are asked for.
pub trait Metas<'a>: Copy {
    /// Their metas.
    fn metas(self) -> impl Iterator<Item = &'a Arc<Meta>> + Clone;
}

impl<'a> Metas<'a> for &'a [View] {
    fn metas(self) -> impl Iterator<Item = &'a Arc<Meta>> + Clone {
        self.iter().map(|view| &view.meta)
    }
}

impl<'a> Metas<'a> for &'a [Arc<Meta>] {
    fn metas(self) -> impl Iterator<Item = &'a Arc<Meta>> + Clone {
        self.iter()
    }
}

impl<'a, M: Metas<'a>> Parts<'a, M> {
    /// A hash that is the same for equal parts and threads.
    pub fn hash(&self, threads: usize) -> u64 {
        let mut hasher = FxHasher::default();
        (self.kind, threads).hash(&mut hasher);
        let given = self.given.into_iter().flat_map(Metas::metas);
        self.inputs.metas().chain(given).for_each(|meta| meta.hash(&mut hasher));
        hasher.finish()
    }

    /// Whether a call was made from equal parts.
    pub fn are_of(&self, call: &Call) -> bool {
        call.are_given == self.given.is_some()
            && call.kind == *self.kind
            && call.inputs.iter().eq(self.inputs.metas())
            && self.given.is_none_or(|given| call.outputs.iter().eq(given.metas()))
    }

    /// The call: checks the inputs, and infers the outputs unless they are given.
    ///
    /// # Errors
    /// The errors of the family's checks.
    pub fn call(&self) -> Result<Call> {
        let inputs: SmallVec<[Arc<Meta>; 4]> = self.inputs.metas().cloned().collect();
        check_stored(self.kind.family(), &inputs)?;
        let outputs = match self.given {
            Some(given) => given.metas().cloned().collect(),
            None => infer(self.kind, &inputs)?,
        };
        let effects = self.kind.family().effects();
        let are_given = self.given.is_some();
        Ok(Call { kind: self.kind.clone(), inputs, outputs, effects, are_given })
    }
}

impl Call {
    /// An operation on these inputs, with its outputs inferred.
    ///
    /// # Errors
    /// The errors of the family's checks.
    pub fn new<'a>(kind: &'a Kind, inputs: impl Metas<'a>) -> Result<Call> {
        Parts { kind, inputs, given: None }.call()
    }

    /// The parts that make an equal call.
    pub fn parts(&self) -> Parts<'_, &[Arc<Meta>]> {
        let given = self.are_given.then_some(&self.outputs[..]);
        Parts { kind: &self.kind, inputs: &self.inputs, given }
    }

    /// The input that shares its memory with output `o`.
    pub fn state_of(&self, o: usize) -> Option<usize> {
        self.effects.state.iter().find(|pair| pair.1 == o).map(|pair| pair.0)
    }

    /// Raises the versions of everything that it writes, even if the kernel then fails, because it
    /// may have written some of its outputs. `outputs` are those that are not state.
    pub fn raise_versions(&self, inputs: &[View], outputs: &[View]) {
        self.effects.state.iter().for_each(|&(i, _)| inputs[i].block.touch());
        outputs.iter().for_each(|v| v.block.touch());
    }

    /// The metas of the inputs, then of the outputs.
    pub fn io(&self) -> SmallVec<[&Meta; 8]> {
        self.inputs.iter().chain(&self.outputs).map(|meta| &**meta).collect()
    }

    /// The operation's cost.
    pub fn cost(&self) -> Cost {
        self.kind.family().cost(&self.io())
    }

    /// The operation's name.
    pub fn name(&self) -> &'static str {
        self.kind.family().name()
    }
}

impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}: {:?} -> {:?}", self.kind, self.inputs, self.outputs)
    }
}

/// Checks that types which are only stored are not computed with.
fn check_stored(family: &dyn Family, inputs: &[Arc<Meta>]) -> Result<()> {
    let stored = inputs.iter().map(|meta| meta.dtype).find(|dtype| dtype.is_storage());
    match stored {
        Some(dtype) if family.computes() => Err(super::only_stored(family.name(), dtype)),
        _ => Ok(()),
    }
}

/// The inferred outputs; state keeps the meta of its input.
fn infer(kind: &Kind, inputs: &[Arc<Meta>]) -> Result<OutputMetas> {
    let metas: SmallVec<[&Meta; 4]> = inputs.iter().map(|meta| &**meta).collect();
    let name = kind.family().name();
    let mut outputs = OutputMetas::new();
    for meta in kind.family().infer(&metas)? {
        meta.shape.checked_numel(name)?;
        outputs.push(Arc::new(meta));
    }
    for &(i, o) in kind.family().effects().state {
        let got = || format!("an expanded input {i}");
        let want = "each element in a place of its own, since it is updated";
        crate::ensure!(!view::repeats(metas[i]), Error::value(name, got(), want));
        outputs[o] = inputs[i].clone();
    }
    Ok(outputs)
}
