//! Packs weights that do not change from run to run into the layout that their kernel prefers, with
//! separate operations that need not run in every run.

use rustc_hash::FxHashMap;

use super::hoist;
use crate::error::Result;
use crate::graph::draft::Draft;
use crate::graph::{Op, Place};
use crate::kernels::Width;
use crate::ops::packed::{Pack, Packed};
use crate::ops::{Kind, Meta};

/// A weight's block and offset, and how it is packed.
type Key = (u32, usize, Kind);

/// Applies the rule wherever it fits.
///
/// # Errors
/// Any error of inferring an operation.
pub fn apply(draft: &mut Draft) -> Result<()> {
    let constant = hoist::blocks(draft);
    let mut known: FxHashMap<Key, Place> = FxHashMap::default();
    for n in draft.numbers() {
        let Some((pack, input)) = found(draft, n, &constant)? else { continue };
        let mut step = draft.step(n).cloned().expect("it was found");
        let w = step.inputs[input].clone();
        let of = step.call.kind.clone();
        let packed = match known.get(&(w.block, w.offset, pack.clone())) {
            Some(packed) => packed.clone(),
            None => {
                let packed = insert(draft, n, (pack.clone(), &w, step.origin))?;
                known.insert((w.block, w.offset, pack), packed.clone());
                packed
            }
        };
        step.inputs[input] = packed;
        let kind = Packed { of: Box::new(of), input, meta: Meta::clone(&w.meta) };
        step.call = draft.infer(kind.into(), &step.inputs)?;
        draft.replace(n, step);
    }
    Ok(())
}

/// How an input of step `n` can be packed, if it is constant.
fn found(draft: &Draft, n: usize, constant: &[bool]) -> Result<Option<(Kind, usize)>> {
    let Some(step) = draft.step(n) else { return Ok(None) };
    if !step.inputs.iter().any(|input| constant[input.block as usize]) {
        return Ok(None);
    }
    let io: Vec<&Meta> = step.places().map(|place| &*place.meta).collect();
    let width = Width::of(step.call.cost(), draft.threads());
    let packing = draft.target().packing(&step.call.kind, &io, width)?;
    let packing = packing.filter(|p| constant[step.inputs[p.input].block as usize]);
    Ok(packing.map(|packing| {
        let pack = Pack {
            of: Box::new(step.call.kind.clone()),
            io: io.into_iter().cloned().collect(),
            width: width.0,
            input: packing.input,
            bytes: packing.bytes,
        };
        (pack.into(), packing.input)
    }))
}

/// Inserts a packing step before step `n`; returns its result.
fn insert(draft: &mut Draft, n: usize, (pack, w, origin): (Kind, &Place, u32)) -> Result<Place> {
    let inputs = smallvec::smallvec![w.clone()];
    let call = draft.infer(pack, &inputs)?;
    let packed = draft.temporary(&call.outputs[0]);
    let outputs = smallvec::smallvec![packed.clone()];
    draft.insert_before(n, Op { call, inputs, outputs, origin });
    Ok(packed)
}

/// Reverts packing steps that remain in runs, because kernels can pack by themselves.
///
/// # Errors
/// Any error of inferring an operation.
pub fn undo(draft: &mut Draft) -> Result<()> {
    for n in draft.numbers() {
        let Some(pack) = draft.step(n).filter(|step| matches!(step.call.kind, Kind::Pack(_)))
        else {
            continue;
        };
        let (w, packed) = (pack.inputs[0].clone(), pack.outputs[0].block);
        for reader in draft.readers(packed).clone().iter() {
            let mut step = draft.step(reader).cloned().expect("it reads");
            let Kind::Packed(kind) = step.call.kind.clone() else {
                unreachable!("nobody else reads")
            };
            step.inputs[kind.input] = w.clone();
            step.call = draft.infer(*kind.of, &step.inputs)?;
            draft.replace(reader, step);
        }
        draft.remove(n);
    }
    Ok(())
}
