//! Packs weights that do not change from run to run into the layout that their kernel prefers, with
//! separate operations that need not run in every run.

use rustc_hash::FxHashMap;
use smallvec::smallvec;

use super::hoist;
use super::matching::{insert, remake};
use crate::error::Result;
use crate::graph::Place;
use crate::graph::draft::Draft;
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
        let step = draft.step(n).expect("it was found");
        let (mut inputs, of) = (step.inputs.clone(), step.call.kind.clone());
        let w = inputs[input].clone();
        let packed = match known.get(&(w.block, w.offset, pack.clone())) {
            Some(packed) => packed.clone(),
            None => {
                let packed = insert(draft, n, pack.clone(), smallvec![w.clone()])?;
                known.insert((w.block, w.offset, pack), packed.clone());
                packed
            }
        };
        inputs[input] = packed;
        let kind = Packed { of: Box::new(of), input, meta: Meta::clone(&w.meta) };
        remake(draft, n, kind.into(), inputs)?;
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
            let step = draft.step(reader).expect("it reads");
            let Kind::Packed(kind) = step.call.kind.clone() else {
                unreachable!("nobody else reads")
            };
            let mut inputs = step.inputs.clone();
            inputs[kind.input] = w.clone();
            remake(draft, reader, *kind.of, inputs)?;
        }
        draft.remove(n);
    }
    Ok(())
}
