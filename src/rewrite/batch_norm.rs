//! Splits batch normalisation into statistics and one pass that applies them, which absorbs an
//! addition and a ReLU after it. The gradients of ReLU and normalisation are fused, too: the mask
//! of the ReLU is recomputed from the normalised input, so that the output of the ReLU need not be
//! kept. Normalisation by given statistics is the pass alone.

use smallvec::{SmallVec, smallvec};

use super::remake;
use crate::error::Result;
use crate::graph::draft::Draft;
use crate::graph::{Op, Place};
use crate::ops::binary::{Binary, BinaryFn};
use crate::ops::fold::BatchNormFactor;
use crate::ops::norm::{BatchNorm, BatchNormInference};
use crate::ops::normalize::{BatchNormReluGrad, BatchNormStatistics, Normalize};
use crate::ops::unary::{Unary, UnaryFn, UnaryGrad};
use crate::ops::{Kind, Meta};

/// Applies the rule wherever it fits.
///
/// # Errors
/// Any error of inferring an operation.
pub fn apply(draft: &mut Draft) -> Result<()> {
    for n in draft.numbers() {
        match draft.step(n).map(|step| step.call.kind.clone()) {
            Some(Kind::BatchNorm(norm)) => by_batch(draft, n, norm)?,
            Some(Kind::BatchNormInference(norm)) => {
                let pass = apply_given(draft, n, &norm)?;
                take_along(draft, pass)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Applies the rule to a normalisation by the batch's statistics.
fn by_batch(draft: &mut Draft, n: usize, norm: BatchNorm) -> Result<()> {
    let (statistics, pass) = split(draft, n, norm)?;
    let applied = take_along(draft, pass)?;
    while let Some(pair) = gradients_of(draft, &statistics, n, applied) {
        fuse_gradients(draft, &statistics, pair)?;
    }
    Ok(())
}

/// Replaces a normalisation by given statistics with the pass, after a step that computes the
/// factor that it multiplies by; returns the pass.
fn apply_given(draft: &mut Draft, n: usize, norm: &BatchNormInference) -> Result<usize> {
    let Op { inputs, outputs, origin, .. } = draft.step(n).cloned().expect("it was found");
    let [x, scale, bias, mean, var] = [0, 1, 2, 3, 4].map(|i| inputs[i].clone());
    let given = [scale, var];
    let call = draft.infer(BatchNormFactor { eps: norm.eps }.into(), &given)?;
    let factor = draft.temporary(&call.outputs[0]);
    let made = smallvec![factor.clone()];
    draft.replace(n, Op { call, inputs: given.into_iter().collect(), outputs: made, origin });
    let inputs: SmallVec<[Place; 4]> = smallvec![x, mean, factor, bias];
    let call = draft.infer(Normalize { adds: false, relu: false }.into(), &inputs)?;
    Ok(draft.insert_after(n, Op { call, inputs, outputs, origin }))
}

/// Replaces a normalisation with statistics and, after them, the pass that applies them; returns
/// the statistics and the pass.
fn split(draft: &mut Draft, n: usize, norm: BatchNorm) -> Result<(Op, usize)> {
    let mut step = draft.step(n).cloned().expect("the caller found it");
    let (x, y, origin) = (step.inputs[0].clone(), step.outputs.remove(0), step.origin);
    step.call = draft.infer(BatchNormStatistics { norm }.into(), &step.inputs)?;
    let (factor, term) = (&step.call.outputs[2], &step.call.outputs[3]);
    let (factor, term) = (draft.temporary(factor), draft.temporary(term));
    step.outputs.extend([factor.clone(), term.clone()]);
    let inputs: SmallVec<[Place; 4]> = smallvec![x, step.outputs[0].clone(), factor, term];
    let call = draft.infer(Normalize { adds: false, relu: false }.into(), &inputs)?;
    draft.replace(n, step.clone());
    let pass = draft.insert_after(n, Op { call, inputs, outputs: smallvec![y], origin });
    Ok((step, pass))
}

/// Lets the pass at `n` absorb the steps after it, as long as each is the only reader of its
/// result; returns the step at which the pass ends up.
fn take_along(draft: &mut Draft, mut n: usize) -> Result<usize> {
    while let Some((reader, kind, inputs)) = behind(draft, n) {
        remake(draft, reader, kind.into(), inputs)?;
        draft.remove(n);
        n = reader;
    }
    Ok(n)
}

/// The step that the pass at `n` may absorb, and the pass that then replaces it.
fn behind(draft: &Draft, n: usize) -> Option<(usize, Normalize, SmallVec<[Place; 4]>)> {
    let pass = draft.step(n)?;
    let (Kind::Normalize(kind), z) = (&pass.call.kind, &pass.outputs[0]) else { return None };
    let reader = draft.only_reader(z.block)?;
    let step = draft.step(reader)?;
    let mut inputs = pass.inputs.clone();
    let kind = match step.call.kind {
        Kind::Unary(Unary { f: UnaryFn::Relu }) if !kind.relu => {
            Normalize { relu: true, ..kind.clone() }
        }
        Kind::Binary(Binary { f: BinaryFn::Add }) if !kind.relu && !kind.adds => {
            inputs.push(other(step, z)?);
            Normalize { adds: true, relu: false }
        }
        _ => return None,
    };
    let y = &step.outputs[0];
    let fits = step.inputs.contains(z)
        && y.meta == z.meta
        && draft.maker(z) == Some(n)
        && draft.maker(y) == Some(reader)
        && pass.inputs.iter().all(|place| draft.holds(place, n, reader));
    fits.then_some((reader, kind, inputs))
}

/// The tensor added to `z`, if it is another one of the same shape and type. With narrower types
/// the recorded operations round once more before the addition.
fn other(step: &Op, z: &Place) -> Option<Place> {
    let [a, b] = &step.inputs[..] else { return None };
    let other = if a == z { b } else { a };
    let is_alike = other.meta.shape == z.meta.shape && other.meta.dtype == z.meta.dtype;
    (other.block != z.block && is_alike && is_wide(&z.meta)).then(|| other.clone())
}

/// Whether arithmetic is done in the type itself rather than in a wider one.
fn is_wide(meta: &Meta) -> bool {
    matches!(meta.dtype, crate::dtype::DType::Float32 | crate::dtype::DType::Float64)
}

/// The gradients of a ReLU and of the normalisation before it, both of which the pass at `applied`
/// computes, with the statistics computed at `n`.
fn gradients_of(
    draft: &Draft,
    statistics: &Op,
    n: usize,
    applied: usize,
) -> Option<(usize, usize)> {
    let pass = draft.step(applied)?;
    let y = &pass.outputs[0];
    let is_relu = pass.call.kind == Kind::from(Normalize { adds: false, relu: true });
    if !is_relu || !is_wide(&y.meta) || draft.maker(y) != Some(applied) {
        return None;
    }
    let pairs = draft.readers(y.block).iter();
    let mut pairs = pairs.filter_map(|relu| Some((relu, behind_relu(draft, statistics, y, relu)?)));
    // The gradient must read what the forward pass read and wrote.
    let kept = || statistics.inputs[..2].iter().chain(&statistics.outputs);
    pairs.find(|&(_, norm)| kept().all(|place| draft.holds(place, n, norm)))
}

/// The gradient of the normalisation, if it is the only reader of the ReLU's gradient.
fn behind_relu(draft: &Draft, statistics: &Op, y: &Place, relu: usize) -> Option<usize> {
    let step = draft.step(relu)?;
    let is_relu = matches!(step.call.kind, Kind::UnaryGrad(UnaryGrad { f: UnaryFn::Relu }));
    let (dy, dz) = (step.inputs.first()?, step.outputs.first()?);
    let norm = draft.only_reader(dz.block)?;
    let fits = is_relu
        && step.inputs.get(1) == Some(y)
        && draft.maker(dz) == Some(relu)
        && draft.holds(dy, relu, norm)
        && is_gradient(draft.step(norm)?, statistics, dz);
    fits.then_some(norm)
}

/// Whether a step is the gradient of the normalisation with these statistics.
fn is_gradient(step: &Op, statistics: &Op, dz: &Place) -> bool {
    let (Kind::BatchNormGrad(gradient), Kind::BatchNormStatistics(of)) =
        (&step.call.kind, &statistics.call.kind)
    else {
        return false;
    };
    let [x, scale] = [&statistics.inputs[0], &statistics.inputs[1]];
    let [mean, var] = [&statistics.outputs[0], &statistics.outputs[1]];
    gradient.eps == of.norm.eps && step.inputs.iter().eq([dz, x, scale, mean, var])
}

/// Replaces both gradients with one operation.
fn fuse_gradients(draft: &mut Draft, statistics: &Op, (relu, norm): (usize, usize)) -> Result<()> {
    let dy = draft.step(relu).expect("it was found").inputs[0].clone();
    let step = draft.step(norm).expect("it was found");
    let Kind::BatchNormGrad(gradient) = step.call.kind.clone() else {
        unreachable!("is_gradient looked at it")
    };
    let mut inputs: SmallVec<[Place; 4]> = smallvec![dy];
    inputs.extend(step.inputs[1..].iter().chain(&statistics.outputs[2..]).cloned());
    let kind = BatchNormReluGrad { norm: gradient }.into();
    remake(draft, norm, kind, inputs)?;
    draft.remove(relu);
    Ok(())
}
