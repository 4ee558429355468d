//! Recordings as bytes: a header, then the operations, the sizes of their blocks and the roles of
//! these as CBOR. What is read is checked as if it were recorded: each operation is inferred again,
//! and its places have to lie within their blocks.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use smallvec::SmallVec;

use super::checksum::Checksum;
use super::queue::{Op, Place, Queue};
use crate::block::Block;
use crate::device::Device;
use crate::error::{Error, Result, guarded};
use crate::graph::Role;
use crate::ops::call::Parts;
use crate::ops::{Call, Kind, Meta};
use crate::view;

/// The first bytes of every recording.
const MAGIC: &[u8; 8] = b"singa_rs";
/// The version of what follows: increased whenever earlier bytes would be read differently.
const VERSION: u32 = 2;
/// The most blocks that no operation uses. A few bytes each would otherwise take much memory.
const MOST_UNUSED: usize = 1 << 16;
/// Bytes of the magic, the version and the checksum.
const HEADER: usize = 20;

/// Everything after the header; operations refer to calls and these to metas by number.
#[derive(Serialize, Deserialize)]
struct Saved<M> {
    metas: Vec<M>,
    calls: Vec<SavedCall>,
    /// Sizes in bytes, and roles.
    blocks: Vec<(usize, Role)>,
    /// The call, the inputs, the outputs and the origin.
    ops: Vec<(u32, SavedPlaces, SavedPlaces, u32)>,
}

/// A kind, its inputs' metas, and those of the outputs if they were given. Kinds take the way of
/// those that Python names, which compiles their hundred readers once instead of once a format.
type SavedCall = (Value, Vec<u32>, Option<Vec<u32>>);

/// Blocks and offsets in elements.
type SavedPlaces = SmallVec<[(u32, usize); 4]>;

impl Queue {
    /// The queue and the roles of its blocks as bytes, without the contents of the blocks.
    ///
    /// # Errors
    /// [`Error::Graph`] if an operation runs user code or exchanges with other processes, neither of
    /// which can be written.
    pub fn to_bytes(&self, roles: &[Role]) -> Result<Vec<u8>> {
        let host = self.ops().iter().find(|op| op.call.effects.host);
        let refusal = |op: &Op| {
            refusal(format!("{} runs user code, or exchanges with other processes", op.call.name()))
        };
        host.map_or(Ok(()), |op| Err(refusal(op)))?;
        let sizes = self.sizes().into_iter();
        let mut saved = Saved {
            metas: Vec::new(),
            calls: Vec::new(),
            blocks: sizes.zip(roles.iter().copied()).collect(),
            ops: Vec::with_capacity(self.ops().len()),
        };
        let (mut metas, mut calls) = (FxHashMap::default(), FxHashMap::default());
        for op in self.ops() {
            let call = *calls.entry(Arc::as_ptr(&op.call)).or_insert_with(|| {
                let call = saved_call(&op.call, &mut metas, &mut saved.metas);
                number(&mut saved.calls, call)
            });
            saved.ops.push((call, saved_places(&op.inputs), saved_places(&op.outputs), op.origin));
        }
        let mut body = Vec::new();
        ciborium::into_writer(&saved, &mut body).map_err(refused)?;
        Ok(sealed(VERSION, &body))
    }

    /// A queue whose operations will run on `device`, and the roles of its blocks, from what
    /// [`Queue::to_bytes`] wrote. Its blocks are new.
    ///
    /// # Errors
    /// [`Error::Graph`] for bytes of another kind or version, and for damaged ones; the errors of
    /// the families' checks.
    pub fn from_bytes(device: &Arc<Device>, bytes: &[u8]) -> Result<(Queue, Vec<Role>)> {
        let mut body = opened(bytes)?;
        let saved: Saved<Meta> = ciborium::from_reader(&mut body).map_err(refused)?;
        crate::ensure!(body.is_empty(), refusal("more follows it"));
        // Families check what users pass; that none of them panics is not theirs to promise.
        guarded(OP, || restored(device, saved))
    }
}

const OP: &str = "a saved recording";

/// The error of a recording that does not hold together.
pub fn refusal(message: impl Into<String>) -> Error {
    Error::graph(OP, message)
}

fn refused(error: impl std::fmt::Display) -> Error {
    refusal(error.to_string())
}

/// A body behind its header.
fn sealed(version: u32, body: &[u8]) -> Vec<u8> {
    [MAGIC, &version.to_le_bytes()[..], &Checksum::of(body), body].concat()
}

/// The body behind a valid header.
fn opened(bytes: &[u8]) -> Result<&[u8]> {
    let is_one = bytes.len() >= HEADER && bytes.starts_with(MAGIC);
    crate::ensure!(is_one, refusal("the bytes are no recording"));
    let (header, body) = bytes.split_at(HEADER);
    let version = u32::from_le_bytes(header[8..12].try_into().expect("four bytes"));
    let message = || format!("it has version {version}, and this is version {VERSION}");
    crate::ensure!(version == VERSION, refusal(message()));
    crate::ensure!(header[12..] == Checksum::of(body), refusal("it is damaged"));
    Ok(body)
}

/// Appends an item; returns its number.
fn number<T>(items: &mut Vec<T>, item: T) -> u32 {
    items.push(item);
    items.len() as u32 - 1
}

fn saved_call<'a>(
    call: &'a Call,
    known: &mut FxHashMap<&'a Meta, u32>,
    metas: &mut Vec<&'a Meta>,
) -> SavedCall {
    let Parts { kind, inputs, given } = call.parts();
    let mut numbers = |all: &'a [Arc<Meta>]| -> Vec<u32> {
        let number =
            |meta: &'a Arc<Meta>| *known.entry(meta).or_insert_with(|| number(metas, meta));
        all.iter().map(number).collect()
    };
    let kind = serde_json::to_value(kind).expect("attributes are plain data");
    (kind, numbers(inputs), given.map(numbers))
}

fn saved_places(places: &[Place]) -> SavedPlaces {
    places.iter().map(|place| (place.block, place.offset)).collect()
}

fn restored(device: &Arc<Device>, saved: Saved<Meta>) -> Result<(Queue, Vec<Role>)> {
    let Saved { metas, calls, blocks, ops } = saved;
    crate::ensure!(metas.iter().all(is_sound), refusal("a tensor fits into no memory"));
    let metas: Vec<Arc<Meta>> = metas.into_iter().map(Arc::new).collect();
    let call = |saved| Ok(Arc::new(restored_call(&metas, saved)?));
    let calls = calls.into_iter().map(call).collect::<Result<Vec<Arc<Call>>>>()?;
    let total = blocks.iter().try_fold(0usize, |sum, (bytes, _)| sum.checked_add(*bytes));
    let fits = total.is_some_and(|total| total < isize::MAX as usize / 2);
    crate::ensure!(fits, refusal("its blocks fit into no memory"));
    let used: usize = ops.iter().map(|(_, inputs, outputs, _)| inputs.len() + outputs.len()).sum();
    let is_usual = blocks.len() <= used.saturating_add(MOST_UNUSED);
    crate::ensure!(is_usual, refusal("it has many more blocks than operations use"));
    let mut queue = Queue::default();
    for &(bytes, _) in &blocks {
        queue.number(&Block::new(device, bytes));
    }
    for (call, inputs, outputs, origin) in ops {
        let call = calls.get(call as usize).ok_or_else(|| refusal("an operation is missing"))?;
        let inputs = places(&queue, &inputs, &call.inputs)?;
        let outputs = places(&queue, &outputs, &call.outputs)?;
        let is_state = |&(i, o): &(usize, usize)| inputs.get(i) == outputs.get(o);
        let fits = call.effects.state.iter().all(is_state);
        crate::ensure!(fits, refusal("a state is written elsewhere than it is read"));
        queue.push_op(Op {
            call: call.clone(),
            inputs: inputs.into_iter().collect(),
            outputs: outputs.into_iter().collect(),
            origin,
        });
    }
    Ok((queue, blocks.into_iter().map(|(_, role)| role).collect()))
}

/// The call, inferred again; given outputs differ from the inferred ones in their strides at most.
fn restored_call(metas: &[Arc<Meta>], saved: SavedCall) -> Result<Call> {
    let (kind, inputs, given) = saved;
    let kind = &serde_json::from_value::<Kind>(kind).map_err(refused)?;
    let find = |&n: &u32| metas.get(n as usize).cloned();
    let all = |numbers: &[u32]| {
        let found: Option<Vec<Arc<Meta>>> = numbers.iter().map(find).collect();
        found.ok_or_else(|| refusal("a tensor is missing"))
    };
    let inputs = all(&inputs)?;
    let inferred = Call::new(kind, &inputs[..])?;
    let Some(given) = given else { return Ok(inferred) };
    let given = all(&given)?;
    let is_like = |(given, made): (&Arc<Meta>, &Arc<Meta>)| {
        let strides_fit = given == made || kind.family().any_output_strides();
        let is_same = (given.dtype, &given.shape) == (made.dtype, &made.shape);
        is_same && strides_fit && !view::repeats(given)
    };
    let fits =
        given.len() == inferred.outputs.len() && given.iter().zip(&inferred.outputs).all(is_like);
    crate::ensure!(fits, refusal(format!("{} makes no such tensors", inferred.name())));
    Parts { kind, inputs: &inputs[..], given: Some(&given[..]) }.call()
}

/// Whether a meta from outside can be computed with.
fn is_sound(meta: &Meta) -> bool {
    meta.shape.rank() == meta.strides.len() && meta.fits_memory()
}

/// The places of tensors, which must lie within their blocks.
fn places(queue: &Queue, saved: &[(u32, usize)], metas: &[Arc<Meta>]) -> Result<Vec<Place>> {
    crate::ensure!(saved.len() == metas.len(), refusal("an operation has other operands"));
    let place =
        |(&(block, offset), meta): (&(u32, usize), &Arc<Meta>)| queue.place_at(block, offset, meta);
    let found: Option<Vec<Place>> = saved.iter().zip(metas).map(place).collect();
    found.ok_or_else(|| refusal("a tensor lies outside its block"))
}

impl Queue {
    /// A place that was read from a file; None if a tensor of this meta does not lie within the
    /// block there.
    pub fn place_at(&self, block: u32, offset: usize, meta: &Arc<Meta>) -> Option<Place> {
        let bytes = self.blocks().get(block as usize)?.bytes();
        let span = is_sound(meta).then(|| meta.span())?;
        let end = offset.checked_add(span.end.unsigned_abs())?.checked_mul(meta.dtype.size())?;
        let starts_inside = offset as u128 >= span.start.unsigned_abs() as u128;
        let fits = starts_inside && end <= bytes;
        fits.then(|| Place { block, offset, meta: meta.clone() })
    }
}

/// Sets the checksum of bytes that a test has changed.
#[cfg(test)]
pub fn reseal(bytes: &mut [u8]) {
    let sum = Checksum::of(&bytes[HEADER..]);
    bytes[12..HEADER].copy_from_slice(&sum);
}

#[cfg(test)]
mod tests;
