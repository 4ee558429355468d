//! Batch normalisation by running statistics behind a convolution goes into its weights and bias,
//! which are computed once where these stay as they are. Results differ by rounding.

use smallvec::{SmallVec, smallvec};

use super::{constant, kept_longer};
use crate::error::Result;
use crate::graph::draft::{Draft, Prepare, Step};
use crate::graph::{Place, Role};
use crate::ops::Kind;
use crate::ops::fold::FoldBatchNorm;

/// Applies the rule wherever it fits.
///
/// # Errors
/// What `prepare` says.
pub fn apply(draft: &mut Draft, prepare: &mut Prepare<'_>) -> Result<()> {
    let constant = constant::blocks(draft);
    for n in draft.numbers() {
        let Some(conv) = found(draft, n, &constant) else { continue };
        let (before, norm) = (draft.step(conv).cloned(), draft.step(n).cloned());
        let (Some(before), Some(norm)) = (before, norm) else { continue };
        let folded = fold(draft, &before, &norm, prepare)?;
        let inputs = smallvec![
            before.inputs[0].clone(),
            folded.outputs[0].clone(),
            folded.outputs[1].clone()
        ];
        let op = draft.prepare(before.op.kind.clone(), &inputs, prepare)?;
        draft.replace(conv, folded);
        draft.replace(n, Step { op, inputs, outputs: norm.outputs, origin: norm.origin });
    }
    Ok(())
}

/// Where step `n` is a normalisation by constants of what a convolution by constants makes for it
/// alone: the convolution.
fn found(draft: &Draft, n: usize, constant: &[bool]) -> Option<usize> {
    let norm = draft.step(n).filter(|step| matches!(step.op.kind, Kind::BatchNormInference(_)))?;
    let z = &norm.inputs[0];
    let maker = draft.maker(z)?;
    let conv = draft.step(maker).filter(|step| matches!(step.op.kind, Kind::Conv2d(_)))?;
    let is_constant = |place: &Place| constant[place.block as usize];
    let is_alone = draft.readers(z.block) == [n] && draft.role(z.block) == Role::Temporary;
    let w = &conv.inputs[1].meta;
    let fits = is_alone
        && conv.inputs[1..].iter().chain(&norm.inputs[1..]).all(is_constant)
        && w.is_contiguous()
        && norm.inputs[1..].iter().all(|place| place.meta.dtype == w.dtype)
        && conv.inputs.iter().all(|place| draft.holds(place, maker, n))
        && norm.outputs[0].meta == z.meta
        && draft.maker(&norm.outputs[0]) == Some(n)
        && kept_longer(draft, conv, n) <= draft.bytes(z.block);
    fits.then_some(maker)
}

/// The step that makes scaled weights and a shifted bias.
fn fold(draft: &mut Draft, conv: &Step, norm: &Step, prepare: &mut Prepare<'_>) -> Result<Step> {
    let Kind::BatchNormInference(kind) = &norm.op.kind else { unreachable!("it was found") };
    let given = conv.inputs[1..2].iter().chain(&norm.inputs[1..]).chain(&conv.inputs[2..]);
    let inputs: SmallVec<[Place; 4]> = given.cloned().collect();
    let op = draft.prepare(FoldBatchNorm { eps: kind.eps }.into(), &inputs, prepare)?;
    let outputs = op.outputs.clone().iter().map(|meta| draft.temporary(meta)).collect();
    Ok(Step { op, inputs, outputs, origin: norm.origin })
}
