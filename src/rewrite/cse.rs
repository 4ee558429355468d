//! Common subexpression elimination: results computed earlier from the same values are reused.

use rustc_hash::FxHashMap;

use crate::graph::draft::Draft;
use crate::graph::{Op, Place, Role};
use crate::ops::{Effects, Kind};

/// The lifetime of a result is extended only if it has at most this many bytes; recomputing a
/// larger one may be better.
const SMALL: usize = 64 << 10;

/// A computation: the operation, and the block and offset of each input.
type Key = (Kind, Vec<(u32, usize)>);

/// Applies the rule wherever it fits.
pub fn apply(draft: &mut Draft) {
    let mut known: FxHashMap<Key, usize> = FxHashMap::default();
    for n in draft.numbers() {
        let Some(step) = draft.step(n) else { continue };
        if step.call.effects != Effects::PURE || step.inputs.is_empty() {
            continue;
        }
        match known.get(&key(step)) {
            Some(&before) if is_same(draft, before, n) => draft.merge(before, n),
            _ => {
                known.insert(key(step), n);
            }
        }
    }
}

fn key(step: &Op) -> Key {
    (step.call.kind.clone(), step.inputs.iter().map(|place| (place.block, place.offset)).collect())
}

/// Whether two steps with equal keys compute the same, and the first one's results can replace the
/// second one's.
fn is_same(draft: &Draft, before: usize, n: usize) -> bool {
    let (Some(first), Some(second)) = (draft.step(before), draft.step(n)) else { return false };
    let holds = |place: &Place| draft.holds(place, before, n);
    first.inputs == second.inputs
        && first.inputs.iter().all(holds)
        && first.outputs.iter().zip(&second.outputs).all(|(kept, left_out)| {
            draft.maker(kept) == Some(before)
                && draft.maker(left_out) == Some(n)
                && draft.role(left_out.block) == Role::Temporary
                && kept.meta == left_out.meta
                && kept.offset == left_out.offset
                && draft.bytes(kept.block) == draft.bytes(left_out.block)
                && may_be_kept(draft, kept, n)
        })
}

/// Whether a result is live at step `n` anyway, or is small.
fn may_be_kept(draft: &Draft, kept: &Place, n: usize) -> bool {
    let is_needed = draft.readers(kept.block).last().is_some_and(|last| !draft.is_before(last, n));
    is_needed || draft.role(kept.block) != Role::Temporary || draft.bytes(kept.block) <= SMALL
}
