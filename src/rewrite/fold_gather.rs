//! Folds a product or an elementwise operation with constants into the constant table whose rows are
//! gathered before it: `table[i] w` becomes `(table w)[i]`, as for embeddings in front of a recurrent
//! layer. The new table is computed once as long as nothing changes. Products of another number of
//! rows may round differently.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use super::hoist::{self, Limits};
use super::matching::{At, along, wherever};
use crate::error::Result;
use crate::graph::cost::work;
use crate::graph::draft::Draft;
use crate::graph::{Op, Place, Role};
use crate::ops::{Call, Kind};

/// The most bytes of a new table.
const LARGEST: usize = 4 << 20;

/// Rows that are gathered, what is done with them, and the step that does it to the whole table.
struct Found {
    gather: usize,
    step: usize,
    call: Arc<Call>,
    inputs: SmallVec<[Place; 4]>,
    /// Which of the inputs is the table.
    side: usize,
}

/// Applies the rule wherever it fits and saves enough.
///
/// # Errors
/// Any error of inferring an operation.
pub fn apply(draft: &mut Draft, limits: Limits) -> Result<()> {
    let constant = hoist::blocks(draft);
    // What folding makes is constant, too.
    let is_constant = |place: &Place| constant.get(place.block as usize).copied().unwrap_or(true);
    let all: f64 = draft.steps().map(|(_, step)| work(&step.call)).sum();
    let worthwhile = |step: At| {
        found(step, is_constant).filter(|found| is_worthwhile(step.draft, found, limits, all))
    };
    wherever(draft, worthwhile, fold)
}

/// A product, or an operation element by element, of gathered rows and something constant.
fn found(step: At, is_constant: impl Fn(&Place) -> bool) -> Option<Found> {
    let sides = match step.kind() {
        Kind::Matmul(_) => 1,
        Kind::Binary(_) => 2,
        _ => return None,
    };
    (0..sides).find_map(|side| {
        let gather = gathered(step, &step.inputs[side])?;
        let table = &gather.inputs[0];
        let mut inputs: SmallVec<[Place; 4]> = step.inputs.clone();
        inputs[1 - side] = operand(step, side, table.meta.shape[1])?;
        inputs[side] = table.clone();
        // Rows that are never gathered may be some for which it fails.
        let fits = inputs.iter().all(&is_constant)
            && !step.kind().family().may_fail()
            && step.outputs[0].meta.is_contiguous()
            && step.makes(&step.outputs[0])
            && may_gather_at(gather, step);
        let call = step.draft.infer(step.kind().clone(), &inputs).ok().filter(|_| fits)?;
        Some(Found { gather: gather.n, step: step.n, call, inputs, side })
    })
}

/// The step that gathers these rows of a matrix, if nothing else reads them.
fn gathered<'a>(reader: At<'a>, rows: &Place) -> Option<At<'a>> {
    let gather = reader.own_source(rows)?;
    let Kind::Gather(kind) = gather.kind() else { return None };
    let (table, made) = (&gather.inputs[0].meta, &gather.outputs[0].meta);
    let fits = table.shape.rank() == 2
        && matches!(kind.axis, 0 | -2)
        && made.is_contiguous()
        && rows.meta.is_contiguous()
        && rows.meta.shape.last() == table.shape.last();
    fits.then_some(gather)
}

/// Whether rows may be gathered at a later step: an index that is out of range must be found before
/// anything is written that is there after the run.
fn may_gather_at(gather: At, step: At) -> bool {
    let draft = gather.draft;
    let mut between = draft.steps().skip_while(|&(n, _)| n != gather.n);
    let writes = |op: &Op| op.outputs.iter().any(|at| draft.role(at.block) == Role::Captured);
    let (indices, rows) = (&gather.inputs[1], &gather.outputs[0]);
    gather.holds_until(indices, step)
        && draft.bytes(indices.block) <= draft.bytes(rows.block)
        && !draft.has_host_between(gather.n, step.n)
        && between.find(|&(n, op)| n == step.n || writes(op)).is_some_and(|(n, _)| n == step.n)
}

/// What a table of this many columns meets in the place of the rows on this side: a matrix, or a row
/// that each row meets.
fn operand(step: At, side: usize, columns: usize) -> Option<Place> {
    let other = &step.inputs[1 - side];
    if matches!(step.kind(), Kind::Matmul(_)) {
        return (other.meta.shape.rank() == 2).then(|| other.clone());
    }
    let keeps_shape = step.outputs[0].meta.shape == step.inputs[side].meta.shape;
    let is_row = other.meta.numel() == columns && other.meta.shape.last() == Some(&columns);
    (keeps_shape && is_row).then(|| along(other, other.meta.shape.rank().checked_sub(1)))
}

/// Whether the time that is saved in each run is worth the memory of the new table, and long enough
/// for it to be made outside of the runs. Where nothing else reads the old table, which was made, too,
/// the new one takes its place.
fn is_worthwhile(draft: &Draft, found: &Found, limits: Limits, all: f64) -> bool {
    let is_made = draft.only_reader(found.inputs[found.side].block) == Some(found.gather);
    let (bytes, once) = (found.call.outputs[0].bytes(), work(&found.call));
    let saved = draft.step(found.step).map_or(0.0, |step| work(&step.call));
    let is_enough = saved >= limits.each * bytes as f64 && once >= limits.all * (all + once);
    bytes <= LARGEST && (is_made || is_enough)
}

/// Computes the table, and gathers rows of it where the step was, since its operands may be made late.
fn fold(draft: &mut Draft, Found { gather, step, call, inputs, .. }: Found) -> Result<()> {
    let [gathers, folded] = [gather, step].map(|n| draft.step(n).expect("it was found").clone());
    let table = draft.temporary(&call.outputs[0]);
    let outputs = smallvec![table.clone()];
    draft.insert_before(step, Op { call, inputs, outputs, origin: folded.origin });
    let inputs = smallvec![table, gathers.inputs[1].clone()];
    let call = draft.infer(gathers.call.kind.clone(), &inputs)?;
    let y = Place { meta: call.outputs[0].clone(), ..folded.outputs[0].clone() };
    draft.remove(gather);
    draft.replace(step, Op { call, inputs, outputs: smallvec![y], origin: gathers.origin });
    Ok(())
}
