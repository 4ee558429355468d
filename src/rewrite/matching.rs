//! What rules look for: a step, the steps around it, and what holds between them.

use std::ops::Deref;

use smallvec::{SmallVec, smallvec};

use crate::error::Result;
use crate::graph::draft::Draft;
use crate::graph::{Op, Place, Role};
use crate::ops::{Kind, Meta};

/// A step of a draft.
#[derive(Clone, Copy)]
pub struct At<'a> {
    /// The draft.
    pub draft: &'a Draft,
    /// The number of the step.
    pub n: usize,
    op: &'a Op,
}

impl Deref for At<'_> {
    type Target = Op;

    fn deref(&self) -> &Op {
        self.op
    }
}

impl<'a> At<'a> {
    /// Step `n`, unless it is a gap.
    pub fn new(draft: &'a Draft, n: usize) -> Option<At<'a>> {
        Some(At { draft, n, op: draft.step(n)? })
    }

    /// The operation.
    pub fn kind(&self) -> &'a Kind {
        &self.op.call.kind
    }

    /// This step, if it is such an operation.
    pub fn of(self, kind: impl Into<Kind>) -> Option<At<'a>> {
        (*self.kind() == kind.into()).then_some(self)
    }

    /// The metas of all places, inputs first.
    pub fn metas(&self) -> SmallVec<[&'a Meta; 8]> {
        self.op.places().map(|place| &*place.meta).collect()
    }

    /// The step that makes a place.
    pub fn maker(&self, place: &Place) -> Option<At<'a>> {
        At::new(self.draft, self.draft.maker(place)?)
    }

    /// The same, if only this step reads what it makes.
    pub fn own_maker(&self, place: &Place) -> Option<At<'a>> {
        self.maker(place).filter(|_| self.draft.only_reader(place.block) == Some(self.n))
    }

    /// The step that makes the tensor of which a place is a view, if only this step reads it, and
    /// all of it.
    pub fn own_source(&self, place: &Place) -> Option<At<'a>> {
        let draft = self.draft;
        let source = At::new(draft, draft.writers(place.block).only()?)?;
        let made = source.outputs.iter().find(|made| made.block == place.block)?;
        let is_own = source.makes(made) && draft.only_reader(place.block) == Some(self.n);
        (is_own && draft.is_whole(made) && draft.is_whole(place)).then_some(source)
    }

    /// Whether it makes the place.
    pub fn makes(&self, place: &Place) -> bool {
        self.draft.maker(place) == Some(self.n)
    }

    /// Whether it makes all of its outputs.
    pub fn makes_all(&self) -> bool {
        self.outputs.iter().all(|output| self.makes(output))
    }

    /// The only step that reads the first output, which this step makes.
    pub fn only_reader(&self) -> Option<At<'a>> {
        let output = self.outputs.first().filter(|output| self.makes(output))?;
        At::new(self.draft, self.draft.only_reader(output.block)?)
    }

    /// Whether it would read the same if it ran at a later step.
    pub fn may_move_to(&self, later: At) -> bool {
        self.inputs.iter().all(|place| self.holds_until(place, later))
    }

    /// Whether a place has the same contents after this step as before a later one.
    pub fn holds_until(&self, place: &Place, later: At) -> bool {
        self.draft.holds(place, self.n, later.n)
    }

    /// The bytes of its inputs whose lifetimes would have to be extended to a later step if it ran
    /// there.
    pub fn kept_longer(&self, later: At) -> usize {
        let draft = self.draft;
        let kept = self.inputs.iter().enumerate().filter(|&(i, place)| {
            let is_first = self.inputs[..i].iter().all(|other| other.block != place.block);
            let last = draft.readers(place.block).last();
            let reaches =
                |last| !draft.is_before(last, later.n) || draft.is_right_before(last, later.n);
            let is_needed_anyway = last.is_some_and(reaches);
            is_first && draft.role(place.block) == Role::Temporary && !is_needed_anyway
        });
        kept.map(|(_, place)| draft.bytes(place.block)).sum()
    }

    /// Whether no earlier step reads an output of another, and this step reads all of it or
    /// nothing.
    pub fn sees_whole(&self, output: &Place) -> bool {
        let is_part = |input: &Place| input.block == output.block && input != output;
        let first = self.draft.readers(output.block).first();
        first.is_none_or(|first| !self.draft.is_before(first, self.n))
            && !self.inputs.iter().any(is_part)
    }

    /// Whether this step, if it also reads these factors, writes nothing that it reads: it creates
    /// its outputs, or writes its only output exactly in place of an input.
    pub fn writes_apart(&self, factors: &[Place]) -> bool {
        let is_apart = |output: &Place| {
            let read = self.inputs.iter().filter(|&place| place != output).chain(factors);
            self.inputs.contains(output)
                && read.into_iter().all(|place| place.block != output.block)
        };
        self.makes_all() || self.outputs.len() == 1 && is_apart(&self.outputs[0])
    }
}

/// A place that extends along one axis alone, or that has one element, as a vector.
pub fn along(place: &Place, axis: Option<usize>) -> Place {
    let Meta { dtype, shape, strides } = &*place.meta;
    let (extent, stride) = axis.map_or((1, 1), |axis| (shape[axis], strides[axis]));
    let (shape, strides) = ([extent].into(), [stride][..].into());
    Place { meta: Meta { dtype: *dtype, shape, strides }.into(), ..place.clone() }
}

/// Finds matches step by step and replaces each.
///
/// # Errors
/// Those of `replace`.
pub fn wherever<M>(
    draft: &mut Draft,
    find: impl Fn(At) -> Option<M>,
    replace: impl Fn(&mut Draft, M) -> Result<()>,
) -> Result<()> {
    for n in draft.numbers() {
        while let Some(found) = At::new(draft, n).and_then(&find) {
            replace(draft, found)?;
        }
    }
    Ok(())
}

/// Inserts an operation of one result before step `n`, with its origin; returns the result.
///
/// # Errors
/// Any error of inferring the operation.
pub fn insert(
    draft: &mut Draft,
    n: usize,
    kind: Kind,
    inputs: SmallVec<[Place; 4]>,
) -> Result<Place> {
    let call = draft.infer(kind, &inputs)?;
    let made = draft.temporary(&call.outputs[0]);
    let origin = draft.step(n).expect("the caller found it").origin;
    draft.insert_before(n, Op { call, inputs, outputs: smallvec![made.clone()], origin });
    Ok(made)
}

/// Replaces the operation of step `n`, keeping its outputs.
///
/// # Errors
/// Any error of inferring the operation.
pub fn remake(draft: &mut Draft, n: usize, kind: Kind, inputs: SmallVec<[Place; 4]>) -> Result<()> {
    let call = draft.infer(kind, &inputs)?;
    let step = draft.step(n).expect("the caller found it");
    let (outputs, origin) = (step.outputs.clone(), step.origin);
    draft.replace(n, Op { call, inputs, outputs, origin });
    Ok(())
}
