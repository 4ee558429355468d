//! Leaves out casts to a wider type and back: what reads the result reads the original instead.

use super::matching::{At, wherever};
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::Role;
use crate::graph::draft::Draft;
use crate::ops::Kind;

/// Applies the rule wherever it fits.
///
/// # Errors
/// None.
pub fn apply(draft: &mut Draft) -> Result<()> {
    wherever(draft, found, |draft, (n, [made, original])| {
        draft.remove(n);
        draft.redirect(made, original);
        Ok(())
    })
}

/// A cast that undoes the one before it: its step, and the blocks of its result and the original.
fn found(back: At) -> Option<(usize, [u32; 2])> {
    let wide = back.inputs.first().filter(|_| is_cast(&back))?;
    let there = back.maker(wide).filter(is_cast)?;
    let (x, y) = (&there.inputs[0], &back.outputs[0]);
    let draft = back.draft;
    let is_written = |n| draft.writers(x.block).iter().any(|writer| writer == n);
    let is_kept = |n| draft.holds(x, there.n, n) && !is_written(n);
    let fits = x.meta == y.meta
        && widens(x.meta.dtype, wide.meta.dtype)
        && draft.is_whole(x)
        && draft.is_whole(y)
        && back.makes(y)
        && draft.role(y.block) == Role::Temporary
        && draft.readers(y.block).iter().all(is_kept);
    fits.then_some((back.n, [y.block, x.block]))
}

fn is_cast(step: &At) -> bool {
    matches!(step.kind(), Kind::Cast(_))
}

/// Whether a float type holds all values of another.
fn widens(from: DType, to: DType) -> bool {
    use DType::{BFloat16, Float16, Float32, Float64};
    matches!((from, to), (Float16 | BFloat16, Float32 | Float64) | (Float32, Float64))
}
