//! Folds batch normalisation by running statistics into the weights and bias of a preceding
//! convolution or matrix product; these are computed once as long as they do not change. Changes
//! rounding.

use smallvec::{SmallVec, smallvec};

use super::{ADD, constant, kept_longer, remake};
use crate::error::Result;
use crate::graph::draft::Draft;
use crate::graph::{Op, Place};
use crate::ops::fold::FoldBatchNorm;
use crate::ops::{Kind, Meta};

/// A convolution or matrix product, and the normalisation of its result.
struct Found {
    maker: usize,
    /// The step that adds a bias to a product.
    sum: Option<usize>,
    norm: usize,
    /// The bias, if any.
    bias: Option<Place>,
}

/// Applies the rule wherever it fits.
///
/// # Errors
/// Any error of inferring an operation.
pub fn apply(draft: &mut Draft) -> Result<()> {
    let constant = constant::blocks(draft);
    for n in draft.numbers() {
        let Some(found) = found(draft, n, &constant) else { continue };
        let maker = draft.step(found.maker).cloned().expect("it was found");
        let folded = fold(draft, &found, &maker)?;
        let [x, w, bias] =
            [&maker.inputs[0], &folded.outputs[0], &folded.outputs[1]].map(Place::clone);
        let kind = maker.call.kind.clone();
        draft.replace(found.maker, folded);
        match found.sum {
            None => remake(draft, n, kind, smallvec![x, w, bias])?,
            Some(sum) => {
                remake(draft, sum, kind, smallvec![x, w])?;
                let product = draft.step(sum).expect("it was made").outputs[0].clone();
                remake(draft, n, ADD, smallvec![product, bias])?;
            }
        }
    }
    Ok(())
}

/// A match: step `n` normalises, by constants, the result of a convolution or product with constant
/// weights that nothing else reads.
fn found(draft: &Draft, n: usize, constant: &[bool]) -> Option<Found> {
    let norm =
        draft.step(n).filter(|step| matches!(step.call.kind, Kind::BatchNormInference(_)))?;
    let z = &norm.inputs[0];
    let found = maker(draft, n, z)?;
    let step = draft.step(found.maker)?;
    let is_constant = |place: &Place| constant[place.block as usize];
    let w = &step.inputs[1].meta;
    let given = step.inputs[1..2].iter().chain(&norm.inputs[1..]).chain(&found.bias);
    let fits = given.clone().all(is_constant)
        && given.clone().all(|place| place.meta.dtype == w.dtype)
        && w.is_contiguous()
        && draft.holds(&step.inputs[0], found.maker, n)
        && norm.outputs[0].meta == z.meta
        && draft.maker(&norm.outputs[0]) == Some(n)
        && kept_longer(draft, step, n) <= draft.bytes(z.block);
    fits.then_some(found)
}

/// What produces `z`, if only step `norm` reads it.
fn maker(draft: &Draft, norm: usize, z: &Place) -> Option<Found> {
    let maker = made_for(draft, z, norm)?;
    let step = draft.step(maker)?;
    if matches!(step.call.kind, Kind::Conv2d(_)) {
        return Some(Found { maker, sum: None, norm, bias: step.inputs.get(2).cloned() });
    }
    let [product, bias] = &step.inputs[..] else { return None };
    let of = made_for(draft, product, maker)?;
    let is_product = matches!(draft.step(of)?.call.kind, Kind::Matmul(_));
    let fits = step.call.kind == ADD
        && is_product
        && z.meta == product.meta
        && z.meta.shape.rank() == 2
        && draft.step(of)?.inputs[1].meta.shape.rank() == 2
        && is_row(&bias.meta, &z.meta);
    fits.then(|| Found { maker: of, sum: Some(maker), norm, bias: Some(row(bias)) })
}

/// The step that produces a place, if only step `reader` reads it.
fn made_for(draft: &Draft, place: &Place, reader: usize) -> Option<usize> {
    draft.maker(place).filter(|_| draft.only_reader(place.block) == Some(reader))
}

/// Whether a bias is a single row of a matrix.
fn is_row(bias: &Meta, matrix: &Meta) -> bool {
    bias.shape.last() == matrix.shape.last() && bias.numel() == matrix.shape[1]
}

/// A row as a vector.
fn row(place: &Place) -> Place {
    let last = place.meta.shape.rank() - 1;
    let (shape, strides) = ([place.meta.shape[last]].into(), [place.meta.strides[last]][..].into());
    let meta = Meta { dtype: place.meta.dtype, shape, strides };
    Place { meta: meta.into(), ..place.clone() }
}

/// The step that computes the scaled weights and the shifted bias.
fn fold(draft: &mut Draft, found: &Found, maker: &Op) -> Result<Op> {
    let norm = draft.step(found.norm).expect("it was found");
    let Kind::BatchNormInference(kind) = &norm.call.kind else { unreachable!("it was found") };
    let kind = FoldBatchNorm { eps: kind.eps, axis: usize::from(found.sum.is_some()) };
    let given = maker.inputs[1..2].iter().chain(&norm.inputs[1..]).chain(&found.bias);
    let (inputs, origin): (SmallVec<[Place; 4]>, _) = (given.cloned().collect(), norm.origin);
    let call = draft.infer(kind.into(), &inputs)?;
    let outputs = smallvec![draft.temporary(&call.outputs[0]), draft.temporary(&call.outputs[1])];
    Ok(Op { call, inputs, outputs, origin })
}
