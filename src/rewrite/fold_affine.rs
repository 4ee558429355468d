//! Folds a constant factor or term of each channel behind a convolution into the weights and bias,
//! which are computed once as long as they do not change. Changes rounding.

use smallvec::smallvec;

use super::hoist;
use super::matching::{At, along, insert, wherever};
use crate::error::Result;
use crate::graph::draft::Draft;
use crate::graph::{Op, Place};
use crate::ops::binary::{Binary, BinaryFn};
use crate::ops::unary::{Unary, UnaryFn};
use crate::ops::{Kind, Meta};

/// A convolution, the operation on its result, and the other operand for each channel.
struct Found {
    conv: usize,
    step: usize,
    /// Where the convolution is to be.
    at: usize,
    f: BinaryFn,
    channels: Place,
}

/// Applies the rule wherever it fits.
///
/// # Errors
/// Any error of inferring an operation.
pub fn apply(draft: &mut Draft) -> Result<()> {
    let constant = hoist::blocks(draft);
    // What folding makes is constant, too.
    let is_constant = |place: &Place| constant.get(place.block as usize).copied().unwrap_or(true);
    wherever(draft, |step| found(step, is_constant), fold)
}

/// A step that multiplies or adds something constant to each channel of the result, which nothing
/// else reads, of a convolution with constant weights.
fn found(step: At, is_constant: impl Fn(&Place) -> bool) -> Option<Found> {
    let Kind::Binary(Binary { f }) = *step.kind() else { return None };
    let sides = match f {
        BinaryFn::Add | BinaryFn::Mul => 2,
        BinaryFn::Sub | BinaryFn::Div => 1,
        _ => return None,
    };
    (0..sides).find_map(|side| {
        let (z, other) = (&step.inputs[side], &step.inputs[1 - side]);
        let conv = step.own_source(z).filter(|conv| matches!(conv.kind(), Kind::Conv(_)))?;
        let images = &conv.outputs[0].meta;
        let channels = by_channel(other, z, images)?;
        let mut constants = conv.inputs[1..].iter().chain([other]);
        let at = place(conv, step, other)?;
        let fits = z.meta.dtype.is_wide_float()
            && constants.all(|place| is_constant(place) && place.meta.dtype == z.meta.dtype)
            && (is_factor(f) || conv.inputs.len() == 3 || is_bias(&channels, images))
            && step.outputs[0].meta == z.meta
            && step.makes(&step.outputs[0]);
        fits.then_some(Found { conv: conv.n, step: step.n, at, f, channels })
    })
}

/// Where the convolution is to be: where it is, or where the step is if the other operand is made
/// later.
fn place(conv: At, step: At, other: &Place) -> Option<usize> {
    let draft = step.draft;
    if draft.writers(other.block).iter().all(|writer| draft.is_before(writer, conv.n)) {
        return Some(conv.n);
    }
    let may_move = conv.holds_until(&conv.inputs[0], step)
        && conv.kept_longer(step) <= draft.bytes(conv.outputs[0].block);
    may_move.then_some(step.n)
}

/// What images, seen as `z` in any order of axes, meet as a vector with an element for each channel,
/// or with one for all.
fn by_channel(other: &Place, z: &Place, images: &Meta) -> Option<Place> {
    let seen = |d: usize| {
        let is_same = |&e: &usize| {
            (z.meta.shape[e], z.meta.strides[e]) == (images.shape[d], images.strides[d])
        };
        (0..z.meta.shape.rank()).find(is_same)
    };
    let is_order = (0..images.shape.rank()).all(|d| images.shape[d] == 1 || seen(d).is_some());
    let missing = z.meta.shape.rank().checked_sub(other.meta.shape.rank())?;
    let axis = seen(1).and_then(|axis| axis.checked_sub(missing));
    let channels = axis.map_or(1, |axis| other.meta.shape[axis]);
    (is_order && other.meta.numel() == channels).then(|| along(other, axis))
}

/// Whether it may be a bias of its own.
fn is_bias(channels: &Place, images: &Meta) -> bool {
    channels.meta.shape[0] == images.shape[1] && channels.meta.is_contiguous()
}

fn is_factor(f: BinaryFn) -> bool {
    matches!(f, BinaryFn::Mul | BinaryFn::Div)
}

/// Computes weights and bias right before the convolution, which makes what the step made.
fn fold(draft: &mut Draft, Found { conv, step, at, f, channels }: Found) -> Result<()> {
    let Op { call, mut inputs, outputs, origin } = draft.step(conv).expect("it was found").clone();
    let by = Kind::from(Binary { f });
    if is_factor(f) {
        let factors = in_front(&channels, inputs[1].meta.shape.rank());
        inputs[1] = insert(draft, at, by.clone(), smallvec![inputs[1].clone(), factors])?;
    }
    match inputs.get(2).cloned() {
        Some(bias) => inputs[2] = insert(draft, at, by, smallvec![bias, channels])?,
        None if f == BinaryFn::Add => inputs.push(channels),
        None if f == BinaryFn::Sub => inputs.push(insert(draft, at, NEG, smallvec![channels])?),
        None => {}
    }
    let call = draft.infer(call.kind.clone(), &inputs)?;
    let to = draft.step(step).expect("it was found").outputs[0].clone();
    let outputs = smallvec![Place { meta: outputs[0].meta.clone(), ..to }];
    [conv, step].into_iter().for_each(|n| draft.remove(n));
    draft.replace(at, Op { call, inputs, outputs, origin });
    Ok(())
}

/// A vector along the first of so many axes.
fn in_front(vector: &Place, rank: usize) -> Place {
    let Meta { dtype, shape, strides } = &*vector.meta;
    let shape = shape.iter().copied().chain(std::iter::repeat_n(1, rank - 1)).collect();
    let strides = strides.iter().copied().chain(std::iter::repeat_n(1, rank - 1)).collect();
    Place { meta: Meta { dtype: *dtype, shape, strides }.into(), ..vector.clone() }
}

const NEG: Kind = Kind::Unary(Unary { f: UnaryFn::Neg });
