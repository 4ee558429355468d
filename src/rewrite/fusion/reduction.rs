//! Fuses a reduction with the operations on elements before it, whose result it folds piece by piece
//! while it is in the cache. Nothing else has to read that for the result to be never written.

use super::{Fused, Inputs, as_consumer, as_links, fuse};
use crate::error::Result;
use crate::graph::draft::Draft;
use crate::kernels::Fusing;
use crate::ops::Kind;
use crate::rewrite::matching::At;

/// Applies the rule wherever it fits.
///
/// # Errors
/// Any error of inferring an operation.
pub fn apply(draft: &mut Draft, limits: Fusing) -> Result<()> {
    fuse(draft, |to| found(to, limits))
}

/// A result that is so much smaller than what it is made of may lie in memory for longer.
const SMALL: usize = 16;

/// A reduction, fused with the step that makes what it reads, where it runs then.
fn found(to: At, limits: Fusing) -> Option<Fused> {
    let Kind::Reduce(_) = to.kind() else { return None };
    let made = &to.inputs[0];
    let from = to.maker(made).filter(|from| from.outputs[0] == *made)?;
    let first = as_links(from)?;
    let fits = to.makes_all()
        && from.makes_all()
        && from.holds_until(made, to)
        && limits.folded <= made.meta.bytes()
        && (SMALL * to.outputs[0].meta.bytes() <= made.meta.bytes()
            || to.draft.is_right_before(from.n, to.n));
    let fused = || Fused::new((from, first), (to, as_consumer(to)), Inputs::of_first(from, to));
    let fused = fits.then(|| Fused { at: from.n, ..fused() })?;
    let (values, target) = (fused.values()?, to.draft.target());
    let pays_off = fused.inputs.len() <= limits.inputs && target.is_blocked(&fused.region, &values);
    pays_off.then_some(fused)
}
