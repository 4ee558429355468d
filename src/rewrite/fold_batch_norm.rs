//! Folds batch normalisation by running statistics into the weights and bias of a preceding
//! convolution or matrix product; these are computed once as long as they do not change. Changes
//! rounding.

use smallvec::{SmallVec, smallvec};

use super::matching::{At, along, remake, wherever};
use super::{ADD, hoist};
use crate::error::Result;
use crate::graph::draft::Draft;
use crate::graph::{Op, Place};
use crate::ops::Kind;
use crate::ops::fold::FoldBatchNorm;

/// A convolution or matrix product, and the normalisation of its result.
struct Found {
    maker: usize,
    /// The step that adds a bias to a product.
    sum: Option<usize>,
    norm: usize,
    /// What folding computes weights and bias from.
    kind: FoldBatchNorm,
    given: SmallVec<[Place; 4]>,
}

/// Applies the rule wherever it fits.
///
/// # Errors
/// Any error of inferring an operation.
pub fn apply(draft: &mut Draft) -> Result<()> {
    let constant = hoist::blocks(draft);
    // The results of folding are not asked for.
    let is_constant = |place: &Place| constant.get(place.block as usize) == Some(&true);
    wherever(draft, |norm| found(norm, is_constant), fold)
}

/// A step that normalises, by constants, the result of a convolution or product with constant
/// weights that nothing else reads.
fn found(norm: At, is_constant: impl Fn(&Place) -> bool) -> Option<Found> {
    let Kind::BatchNormInference(kind) = norm.kind() else { return None };
    let z = &norm.inputs[0];
    let (maker, sum, bias) = maker(norm, z)?;
    let (x, w) = (&maker.inputs[0], &maker.inputs[1]);
    let given = [w].into_iter().chain(&norm.inputs[1..]).chain(&bias);
    let given: SmallVec<[Place; 4]> = given.cloned().collect();
    let fits = given.iter().all(|place| is_constant(place) && place.meta.dtype == w.meta.dtype)
        && w.meta.is_contiguous()
        && maker.holds_until(x, norm)
        && norm.outputs[0].meta == z.meta
        && norm.makes(&norm.outputs[0])
        && maker.kept_longer(norm) <= norm.draft.bytes(z.block);
    let kind = FoldBatchNorm { eps: kind.eps, axis: usize::from(sum.is_some()) };
    fits.then_some(Found { maker: maker.n, sum, norm: norm.n, kind, given })
}

/// What produces `z`, if only the normalisation reads it: a convolution, or a product to which
/// another step adds a bias.
fn maker<'a>(norm: At<'a>, z: &Place) -> Option<(At<'a>, Option<usize>, Option<Place>)> {
    let step = norm.own_maker(z)?;
    if matches!(step.kind(), Kind::Conv(_)) {
        return Some((step, None, step.inputs.get(2).cloned()));
    }
    let sum = step.of(ADD)?;
    let (made, bias) = (&sum.inputs[0], &sum.inputs[1]);
    let product = sum.own_maker(made).filter(|step| matches!(step.kind(), Kind::Matmul(_)))?;
    let fits = z.meta == made.meta
        && z.meta.shape.rank() == 2
        && product.inputs[1].meta.shape.rank() == 2
        && bias.meta.shape.last() == z.meta.shape.last()
        && bias.meta.numel() == z.meta.shape[1];
    fits.then(|| (product, Some(sum.n), Some(along(bias, bias.meta.shape.rank().checked_sub(1)))))
}

/// Computes weights and bias right before the normalisation, whose operands may be made late, and
/// puts the convolution, or the product and the sum, in its place.
fn fold(draft: &mut Draft, found: Found) -> Result<()> {
    let Op { call: maker, inputs, outputs, origin } =
        draft.step(found.maker).expect("found").clone();
    let call = draft.infer(found.kind.into(), &found.given)?;
    let [w, bias] = [0, 1].map(|o| draft.temporary(&call.outputs[o]));
    let made = smallvec![w.clone(), bias.clone()];
    draft.insert_before(found.norm, Op { call, inputs: found.given, outputs: made, origin });
    draft.remove(found.maker);
    let (kind, x) = (maker.kind.clone(), inputs[0].clone());
    let Some(sum) = found.sum else {
        return remake(draft, found.norm, kind, smallvec![x, w, bias]);
    };
    draft.remove(sum);
    let (inputs, product) = (smallvec![x, w], outputs[0].clone());
    let call = draft.infer(kind, &inputs)?;
    draft.insert_before(found.norm, Op { call, inputs, outputs, origin });
    remake(draft, found.norm, ADD, smallvec![product, bias])
}
