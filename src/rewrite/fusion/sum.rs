//! Fuses an addition into a product, whose sums then start from the addend: a bias, or an
//! accumulated gradient. This changes rounding, so it is done only if results need not be exact.
//! Products that are computed in blocks, and short ones, are left to the other rules, which keep
//! every bit and also find them in the cache.

use super::{Fused, Inputs, as_links, as_producer, fuse};
use crate::error::Result;
use crate::graph::Place;
use crate::graph::draft::Draft;
use crate::kernels::Fusing;
use crate::ops::binary::{Binary, BinaryFn};
use crate::rewrite::matching::At;

/// Applies the rule wherever it fits.
///
/// # Errors
/// Any error of inferring an operation.
pub fn apply(draft: &mut Draft, limits: Fusing) -> Result<()> {
    fuse(draft, |to| found(to, limits))
}

/// A step that adds something to a product that nothing else reads, fused with the product. Of two
/// products, the later one is fused.
fn found(to: At, limits: Fusing) -> Option<Fused> {
    let sum = to.of(Binary { f: BinaryFn::Add })?;
    let fused = sum.inputs.iter().filter_map(|made| with_product(sum, limits, made));
    let fused = fused.filter(|_| sum.inputs[0].block != sum.inputs[1].block);
    fused.reduce(|a, b| if to.draft.is_before(a.steps[0], b.steps[0]) { b } else { a })
}

/// The sum, fused with the product that makes one of its inputs.
fn with_product(to: At, limits: Fusing, made: &Place) -> Option<Fused> {
    let from = to.own_maker(made)?;
    let target = to.draft.target();
    let fits = to.sees_whole(made)
        && from.may_move_to(to)
        && to.writes_apart(&from.inputs)
        && from.kept_longer(to) <= made.meta.bytes()
        && made.meta.bytes() > limits.short
        && !target.is_split(from.kind(), &from.metas());
    let (producer, sum) = (as_producer(from).filter(|_| fits)?, as_links(to)?);
    let mut fused = Fused::new((from, producer), (to, sum), Inputs::of_both(from, to));
    fused.region.exact = false;
    let values = fused.values()?;
    target.starts_sums(&fused.region, &values).then_some(fused)
}
