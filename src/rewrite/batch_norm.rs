//! Splits batch normalisation into statistics and one pass that applies them, which absorbs an
//! addition and a ReLU after it. The gradients of ReLU and normalisation are fused, too: the mask
//! of the ReLU is recomputed from the normalised input, so that the output of the ReLU need not be
//! kept. Normalisation by given statistics is the pass alone.

use smallvec::{SmallVec, smallvec};

use super::matching::{At, remake, wherever};
use crate::error::Result;
use crate::graph::draft::Draft;
use crate::graph::{Op, Place};
use crate::ops::Kind;
use crate::ops::binary::{Binary, BinaryFn};
use crate::ops::fold::BatchNormFactor;
use crate::ops::normalize::{BatchNormReluGrad, BatchNormStatistics, Normalize};
use crate::ops::unary::{Unary, UnaryFn, UnaryGrad};

/// The pass alone.
const PASS: Normalize = Normalize { adds: false, relu: false };

/// Applies the rule wherever it fits.
///
/// # Errors
/// Any error of inferring an operation.
pub fn apply(draft: &mut Draft) -> Result<()> {
    wherever(draft, normalization, split)?;
    let remade = |draft: &mut Draft, (absorbed, n, kind, inputs)| {
        remake(draft, n, kind, inputs)?;
        draft.remove(absorbed);
        Ok(())
    };
    wherever(draft, absorbing, remade)?;
    wherever(draft, gradients, remade)
}

/// A normalisation, and what computes the statistics that it is by.
fn normalization(step: At) -> Option<(usize, Kind)> {
    match step.kind().clone() {
        Kind::BatchNorm(norm) => Some((step.n, BatchNormStatistics { norm }.into())),
        Kind::BatchNormInference(norm) => Some((step.n, BatchNormFactor { eps: norm.eps }.into())),
        _ => None,
    }
}

/// Replaces a normalisation with a step for the statistics, or the factor that it multiplies by,
/// and the pass after it.
fn split(draft: &mut Draft, (n, kind): (usize, Kind)) -> Result<()> {
    let Op { inputs, mut outputs, origin, .. } = draft.step(n).expect("it was found").clone();
    let (x, y) = (inputs[0].clone(), outputs.remove(0));
    let by_batch = matches!(kind, Kind::BatchNormStatistics(_));
    let given =
        if by_batch { inputs.clone() } else { smallvec![inputs[1].clone(), inputs[4].clone()] };
    let call = draft.infer(kind, &given)?;
    outputs.extend(call.outputs[outputs.len()..].iter().map(|meta| draft.temporary(meta)));
    let applied: SmallVec<[Place; 4]> = match by_batch {
        true => [&x, &outputs[0], &outputs[2], &outputs[3]].map(Place::clone).into(),
        false => [&x, &inputs[3], &outputs[0], &inputs[2]].map(Place::clone).into(),
    };
    draft.replace(n, Op { call, inputs: given, outputs, origin });
    let call = draft.infer(PASS.into(), &applied)?;
    draft.insert_after(n, Op { call, inputs: applied, outputs: smallvec![y], origin });
    Ok(())
}

/// A step that becomes another one, together with an earlier one that goes: the earlier one's
/// number, its own, and what it becomes.
type Absorbed = (usize, usize, Kind, SmallVec<[Place; 4]>);

/// A ReLU or an addition that is the only reader of a pass, which absorbs it. Of two passes that
/// are added, the first does.
fn absorbing(step: At) -> Option<Absorbed> {
    let absorbed = step.inputs.iter().filter_map(|z| {
        let pass = step.own_maker(z)?;
        let Kind::Normalize(kind) = pass.kind() else { return None };
        let (kind, other) = match step.kind() {
            Kind::Unary(Unary { f: UnaryFn::Relu }) if !kind.relu => {
                (Normalize { relu: true, ..kind.clone() }, None)
            }
            Kind::Binary(Binary { f: BinaryFn::Add }) if *kind == PASS => {
                (Normalize { adds: true, ..PASS }, Some(other(step, z)?))
            }
            _ => return None,
        };
        let y = &step.outputs[0];
        let fits = y.meta == z.meta && step.makes(y) && pass.may_move_to(step);
        let inputs = pass.inputs.iter().cloned().chain(other).collect();
        fits.then(|| (pass.n, step.n, kind.into(), inputs))
    });
    absorbed.reduce(|a, b| if step.draft.is_before(b.0, a.0) { b } else { a })
}

/// The tensor added to `z`, if it is another one of the same shape and type. With narrower types
/// the recorded operations round once more before the addition.
fn other(sum: At, z: &Place) -> Option<Place> {
    let other = sum.inputs.iter().find(|&place| place != z)?;
    let is_alike = other.meta.shape == z.meta.shape && other.meta.dtype == z.meta.dtype;
    (other.block != z.block && is_alike && z.meta.dtype.is_wide_float()).then(|| other.clone())
}

/// The gradient of a normalisation that is the only reader of the gradient of the ReLU which the
/// normalising pass applies.
fn gradients(norm: At) -> Option<Absorbed> {
    let Kind::BatchNormGrad(kind) = norm.kind() else { return None };
    let dz = &norm.inputs[0];
    let relu = norm.own_maker(dz)?.of(UnaryGrad { f: UnaryFn::Relu })?;
    let (dy, y) = (&relu.inputs[0], &relu.inputs[1]);
    let pass = relu.maker(y)?.of(Normalize { relu: true, ..PASS })?;
    let statistics = pass.maker(&pass.inputs[2])?;
    let Kind::BatchNormStatistics(of) = statistics.kind() else { return None };
    let (read, made) = (&statistics.inputs, &statistics.outputs);
    // The gradient must read what the forward pass read and wrote.
    let fits = y.meta.dtype.is_wide_float()
        && kind.eps == of.norm.eps
        && norm.inputs.iter().eq([dz, &read[0], &read[1], &made[0], &made[1]])
        && read[..2].iter().chain(made).all(|place| statistics.holds_until(place, norm))
        && relu.holds_until(dy, norm);
    let kind = BatchNormReluGrad { norm: kind.clone() };
    let inputs = [dy].into_iter().chain(&norm.inputs[1..]).chain(&made[2..]).cloned().collect();
    fits.then(|| (relu.n, norm.n, kind.into(), inputs))
}
