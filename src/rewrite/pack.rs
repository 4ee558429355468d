//! Packs weights that do not change from run to run into the layout that their kernel prefers, with
//! separate operations that need not run in every run.

use rustc_hash::FxHashMap;

use super::constant;
use crate::error::Result;
use crate::graph::Place;
use crate::graph::draft::{Draft, Prepare, Step};
use crate::ops::packed::{Pack, Packed};
use crate::ops::{Kind, Meta};

/// A weight's block and offset, and how it is packed.
type Key = (u32, usize, Kind);

/// Applies the rule wherever it fits.
///
/// # Errors
/// Any error of `prepare`.
pub fn apply(draft: &mut Draft, prepare: &mut Prepare<'_>) -> Result<()> {
    let constant = constant::blocks(draft);
    let mut known: FxHashMap<Key, Place> = FxHashMap::default();
    for n in draft.numbers().step_by(2) {
        let Some((pack, input)) = found(draft, n, &constant)? else { continue };
        let mut step = draft.step(n).cloned().expect("it was found");
        let w = step.inputs[input].clone();
        let of = step.op.kind.clone();
        draft.remove(n);
        let packed = match known.get(&(w.block, w.offset, pack.clone())) {
            Some(packed) => packed.clone(),
            None => {
                let packed = insert(draft, n, (pack.clone(), &w, step.origin), prepare)?;
                known.insert((w.block, w.offset, pack), packed.clone());
                packed
            }
        };
        step.inputs[input] = packed;
        let kind = Packed { of: Box::new(of), input, meta: Meta::clone(&w.meta) };
        step.op = draft.prepare(kind.into(), &step.inputs, prepare)?;
        draft.replace(n + 1, step);
    }
    Ok(())
}

/// How an input of step `n` can be packed, if it is constant and there is a gap for one more step.
fn found(draft: &Draft, n: usize, constant: &[bool]) -> Result<Option<(Kind, usize)>> {
    let Some(step) = draft.step(n).filter(|_| draft.step(n + 1).is_none()) else { return Ok(None) };
    if !step.inputs.iter().any(|input| constant[input.block as usize]) {
        return Ok(None);
    }
    let io: Vec<&Meta> = step.places().map(|place| &*place.meta).collect();
    let packing = draft.target().packing(&step.op.kind, &io, step.op.width)?;
    let packing = packing.filter(|p| constant[step.inputs[p.input].block as usize]);
    Ok(packing.map(|packing| {
        let pack = Pack {
            of: Box::new(step.op.kind.clone()),
            io: io.into_iter().cloned().collect(),
            width: step.op.width.0,
            input: packing.input,
            bytes: packing.bytes,
        };
        (pack.into(), packing.input)
    }))
}

/// Inserts a packing step into a gap; returns its result.
fn insert(
    draft: &mut Draft,
    n: usize,
    (pack, w, origin): (Kind, &Place, u32),
    prepare: &mut Prepare<'_>,
) -> Result<Place> {
    let inputs = smallvec::smallvec![w.clone()];
    let op = draft.prepare(pack, &inputs, prepare)?;
    let packed = draft.temporary(&op.outputs[0]);
    draft.replace(n, Step { op, inputs, outputs: smallvec::smallvec![packed.clone()], origin });
    Ok(packed)
}

/// Reverts packing steps that remain in runs, because kernels can pack by themselves.
///
/// # Errors
/// Any error of `prepare`.
pub fn undo(draft: &mut Draft, prepare: &mut Prepare<'_>) -> Result<()> {
    for n in draft.numbers() {
        let Some(pack) = draft.step(n).filter(|step| matches!(step.op.kind, Kind::Pack(_))) else {
            continue;
        };
        let (w, packed) = (pack.inputs[0].clone(), pack.outputs[0].block);
        for reader in draft.readers(packed).to_vec() {
            let mut step = draft.step(reader).cloned().expect("it reads");
            let Kind::Packed(kind) = step.op.kind.clone() else {
                unreachable!("nobody else reads")
            };
            step.inputs[kind.input] = w.clone();
            step.op = draft.prepare(*kind.of, &step.inputs, prepare)?;
            draft.replace(reader, step);
        }
        draft.remove(n);
    }
    Ok(())
}
