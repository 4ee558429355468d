//! Replaces the logarithm of softmax with log-softmax, and likewise its gradient: probabilities are
//! never computed, so none can underflow. Changes rounding.

use smallvec::{SmallVec, smallvec};

use super::matching::{At, remake, wherever};
use crate::error::Result;
use crate::graph::draft::Draft;
use crate::graph::{Place, Role};
use crate::ops::Kind;
use crate::ops::softmax::{Softmax, SoftmaxGrad};
use crate::ops::unary::{Unary, UnaryFn, UnaryGrad};

/// A logarithm of softmax.
struct Found {
    axis: i64,
    x: Place,
    l: Place,
    steps: [usize; 2],
    gradients: SmallVec<[Gradients; 1]>,
}

/// The gradients of the logarithm and then of softmax, and the one that the first reads.
struct Gradients {
    dl: Place,
    steps: [usize; 2],
}

/// Applies the rule wherever it fits.
///
/// # Errors
/// Any error of inferring an operation.
pub fn apply(draft: &mut Draft) -> Result<()> {
    wherever(draft, found, |draft, Found { axis, x, l, steps: [softmax, log], gradients }| {
        remake(draft, log, Softmax { axis, log: true }.into(), smallvec![x])?;
        for Gradients { dl, steps: [first, second] } in gradients {
            let kind = SoftmaxGrad { axis, log: true }.into();
            remake(draft, second, kind, smallvec![dl, l.clone()])?;
            draft.remove(first);
        }
        draft.remove(softmax);
        Ok(())
    })
}

/// A logarithm of a softmax that is read only by it and by their gradients.
fn found(log: At) -> Option<Found> {
    let log = log.of(Unary { f: UnaryFn::Log })?;
    let (draft, p, l) = (log.draft, &log.inputs[0], &log.outputs[0]);
    let softmax = log.maker(p)?;
    let Kind::Softmax(Softmax { axis, log: false }) = *softmax.kind() else { return None };
    let readers = draft.readers(p.block).iter().filter(|&reader| reader != log.n);
    let gradients = readers.clone().filter_map(|n| gradients(log, At::new(draft, n)?, axis));
    let gradients: SmallVec<[Gradients; 1]> = gradients.collect();
    let is_known = |reader| gradients.iter().any(|pair| pair.steps.contains(&reader));
    let fits = p.meta.dtype.is_wide_float()
        && draft.role(p.block) == Role::Temporary
        && log.makes(l)
        && l.meta == p.meta
        && softmax.may_move_to(log)
        && softmax.kept_longer(log) <= draft.bytes(p.block)
        && readers.clone().all(is_known);
    let (x, l, steps) = (softmax.inputs[0].clone(), l.clone(), [softmax.n, log.n]);
    fits.then_some(Found { axis, x, l, steps, gradients })
}

/// A step and the only reader of its result, if they are the gradients of a logarithm and of the
/// softmax along this axis before it.
fn gradients(log: At, first: At, axis: i64) -> Option<Gradients> {
    let (p, l) = (&log.inputs[0], &log.outputs[0]);
    let first = first.of(UnaryGrad { f: UnaryFn::Log })?;
    let second = first.only_reader()?.of(SoftmaxGrad { axis, log: false })?;
    let dl = &first.inputs[0];
    let fits = first.inputs[1] == *p
        && second.inputs.iter().eq([&first.outputs[0], p])
        && first.holds_until(dl, second)
        && log.holds_until(l, second);
    fits.then(|| Gradients { dl: dl.clone(), steps: [first.n, second.n] })
}
