//! Replaces the logarithm of softmax with log-softmax, and likewise its gradient: probabilities are
//! never computed, so none can underflow. Changes rounding.

use smallvec::{SmallVec, smallvec};

use super::{kept_longer, remake};
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::draft::Draft;
use crate::graph::{Place, Role};
use crate::ops::Kind;
use crate::ops::softmax::{Softmax, SoftmaxGrad};
use crate::ops::unary::{Unary, UnaryFn, UnaryGrad};

/// A logarithm of softmax.
struct Found {
    axis: i64,
    softmax: usize,
    log: usize,
    /// The gradients of the logarithm and then of softmax.
    gradients: SmallVec<[[usize; 2]; 1]>,
}

/// Applies the rule wherever it fits.
///
/// # Errors
/// Any error of inferring an operation.
pub fn apply(draft: &mut Draft) -> Result<()> {
    for n in draft.numbers() {
        let Some(found) = found(draft, n) else { continue };
        join(draft, &found)?;
    }
    Ok(())
}

/// A match: step `n` is the logarithm of a softmax that is read only by it and by their gradients.
fn found(draft: &Draft, n: usize) -> Option<Found> {
    let log = draft.step(n).filter(|step| step.call.kind == Unary { f: UnaryFn::Log }.into())?;
    let (p, l) = (&log.inputs[0], &log.outputs[0]);
    let softmax = draft.maker(p)?;
    let step = draft.step(softmax)?;
    let Kind::Softmax(Softmax { axis, log: false }) = step.call.kind else { return None };
    let readers = draft.readers(p.block).iter().filter(|&reader| reader != n);
    let pair = |reader: usize| gradients(draft, [p, l], axis, [n, reader]);
    let gradients: SmallVec<[[usize; 2]; 1]> = readers.clone().filter_map(pair).collect();
    let known = |reader: usize| gradients.iter().any(|pair| pair.contains(&reader));
    let fits = matches!(p.meta.dtype, DType::Float32 | DType::Float64)
        && draft.role(p.block) == Role::Temporary
        && draft.maker(l) == Some(n)
        && l.meta == p.meta
        && draft.holds(&step.inputs[0], softmax, n)
        && kept_longer(draft, step, n) <= draft.bytes(p.block)
        && readers.clone().all(known);
    fits.then_some(Found { axis, softmax, log: n, gradients })
}

/// If step `first` is the gradient of the logarithm `l` of `p`, which step `log` computes: that
/// step and the gradient of softmax, if it is the only reader of its result.
fn gradients(
    draft: &Draft,
    [p, l]: [&Place; 2],
    axis: i64,
    [log, first]: [usize; 2],
) -> Option<[usize; 2]> {
    let step = draft.step(first)?;
    let (dl, dp) = (step.inputs.first()?, step.outputs.first()?);
    let second = draft.only_reader(dp.block)?;
    let behind = draft.step(second)?;
    let fits = step.call.kind == UnaryGrad { f: UnaryFn::Log }.into()
        && step.inputs.get(1) == Some(p)
        && draft.maker(dp) == Some(first)
        && behind.call.kind == SoftmaxGrad { axis, log: false }.into()
        && behind.inputs[..] == [dp.clone(), p.clone()]
        && draft.holds(dl, first, second)
        && draft.holds(l, log, second);
    fits.then_some([first, second])
}

/// Replaces a match with log-softmax and its gradients.
fn join(draft: &mut Draft, found: &Found) -> Result<()> {
    let axis = found.axis;
    let x = draft.step(found.softmax).expect("it was found").inputs[0].clone();
    remake(draft, found.log, Softmax { axis, log: true }.into(), smallvec![x])?;
    let l = draft.step(found.log).expect("it was put there").outputs[0].clone();
    for &[first, second] in &found.gradients {
        let dl = draft.step(first).expect("it was found").inputs[0].clone();
        let inputs = smallvec![dl, l.clone()];
        remake(draft, second, SoftmaxGrad { axis, log: true }.into(), inputs)?;
        draft.remove(first);
    }
    draft.remove(found.softmax);
    Ok(())
}
