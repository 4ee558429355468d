//! Bitwise comparison of a run of a graph with a run of the operations as recorded.

use std::collections::hash_map::Entry;
use std::hash::Hasher;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet, FxHasher};

use crate::block::Block;
use crate::device::heap;
use crate::dtype::DType;
use crate::engine::executable::Executable;
use crate::engine::{Engine, Run};
use crate::error::{Error, Result};
use crate::graph::Op;
use crate::ops::View;

/// The contents of the blocks that outlive a run: by number, a hash of the bytes.
type Left = FxHashMap<u32, u64>;

/// The outcome of a comparison.
pub struct Compared {
    /// The results of the operations as recorded.
    pub results: Vec<View>,
    /// What the graph computes differently, if anything that could be compared: a bug.
    pub difference: Option<String>,
}

impl Executable {
    /// Why a run cannot be compared with one of the operations as recorded; None if it can.
    pub fn obstacle(&self, recorded: &Executable) -> Option<String> {
        if self.has_hosts() || recorded.has_hosts() {
            return Some("user code or exchanges between processes would run twice".into());
        }
        let (needed, budget) = (recorded.arena_bytes(), self.budget?);
        (needed > budget).then(|| {
            format!("the operations as recorded take {needed} bytes, and the budget is {budget}")
        })
    }

    /// Runs the graph on these arguments and undoes its effects, then runs the operations as
    /// `recorded`, whose results are returned. Both must come from one recording and fit the
    /// arguments, and there must be no [`Executable::obstacle`].
    ///
    /// # Errors
    /// As [`Executable::run`] of the operations as recorded; [`Error::OutOfMemory`], before
    /// anything is written, if there is not enough memory for both.
    pub fn compare<'a>(
        &self,
        recorded: &Executable,
        engine: &'a Engine,
        mut run: Run<'a>,
        arguments: &[View],
    ) -> Result<Compared> {
        let (updates, looker) = (self.updates(arguments), Looker::new(recorded));
        let got = self.aside(arguments, |bound, made| {
            engine.poison(&self.arena, self.arena_bytes());
            let mut seen = Ok(Left::default());
            let run = |nodes| self.replay(engine, &mut run, bound, nodes);
            self.undone(&updates, run, |update| {
                if let Ok(left) = &mut seen
                    && let Err(error) = looker.see(left, update.number, &update.block)
                {
                    seen = Err(error);
                }
            })?;
            looker.left(self, made, arguments, seen?)
        });
        if let Err(error @ Error::OutOfMemory { .. }) = got {
            return Err(error);
        }
        // What was saved must not add to what the second run takes.
        heap::release();
        let (results, want) = recorded.run_and(engine, run, arguments, |made| {
            looker.left(recorded, made, arguments, Left::default())
        })?;
        let difference = match (got, want) {
            (Err(error), _) => {
                Some(format!("it fails where the recorded operations do not: {error}"))
            }
            // They have run, and there was no memory to see what they left.
            (_, Err(Error::OutOfMemory { .. })) => None,
            (Ok(got), want) => self.difference(&got, &want?),
        };
        Ok(Compared { results, difference })
    }

    /// The first block in which two runs differ, in words.
    fn difference(&self, got: &Left, want: &Left) -> Option<String> {
        let differs = |(block, hash): &(&u32, &u64)| got.get(*block) != Some(*hash);
        let block = *want.iter().filter(differs).map(|(block, _)| block).min()?;
        let writes =
            |n: &usize| self.graph.ops()[*n].outputs.iter().any(|place| place.block == block);
        let nodes = 0..self.graph.ops().len();
        Some(match nodes.rev().find(writes) {
            Some(n) => {
                let op = &self.graph.ops()[n];
                let origin = &self.origins()[op.origin as usize];
                format!("the result of {} at {origin} differs", op.call.name())
            }
            None => format!("block {block} differs"),
        })
    }
}

/// Hashes what runs leave.
struct Looker<'a> {
    recorded: &'a Executable,
    /// The element types of its blocks: float types where some operation accesses them as floats.
    dtypes: Vec<DType>,
}

impl<'a> Looker<'a> {
    fn new(recorded: &'a Executable) -> Self {
        let mut dtypes = vec![DType::UInt8; recorded.graph.roles().len()];
        for place in recorded.graph.ops().iter().flat_map(Op::places) {
            let known = &mut dtypes[place.block as usize];
            let is_better = place.meta.dtype.is_float() || !known.is_float();
            *known = if is_better { place.meta.dtype } else { *known };
        }
        Looker { recorded, dtypes }
    }

    /// What a run of `ran`, which has the block numbers of the operations as recorded, has left of
    /// what they leave: the blocks that it made, and those that it updated unless they were seen.
    fn left(
        &self,
        ran: &Executable,
        made: &[Arc<Block>],
        given: &[View],
        mut seen: Left,
    ) -> Result<Left> {
        let own: FxHashSet<u32> = self.recorded.slots.iter().map(|slot| slot.block).collect();
        let made = ran.slots.iter().map(|slot| slot.block).zip(made.iter().cloned());
        let made = made.filter(|(number, _)| own.contains(number));
        let updated = self.recorded.updated(given).into_iter();
        let updated = updated.filter(|(_, block)| block.is_allocated());
        made.chain(updated).try_for_each(|(number, block)| self.see(&mut seen, number, &block))?;
        Ok(seen)
    }

    /// Adds a block, unless it was seen.
    fn see(&self, left: &mut Left, number: u32, block: &Block) -> Result<()> {
        let Entry::Vacant(place) = left.entry(number) else { return Ok(()) };
        // A graph that is wrong may have blocks that the operations as recorded have not.
        let dtype = self.dtypes.get(number as usize).copied().unwrap_or(DType::UInt8);
        place.insert(block.read(|bytes| hash(bytes, dtype))?);
        Ok(())
    }
}

/// How much is hashed at once.
const PIECE: usize = 4096;

/// A hash of a block's contents. All NaNs are equal: which operand's NaN bits a processor
/// propagates is not defined.
fn hash(bytes: &[u8], dtype: DType) -> u64 {
    let (mut hasher, mut buffer) = (FxHasher::default(), [0; PIECE]);
    for piece in bytes.chunks(PIECE) {
        let equal = &mut buffer[..piece.len()];
        equal.copy_from_slice(piece);
        equal_nans(equal, dtype);
        // Single words would only be added up and multiplied, in which two signs cancel.
        hasher.write(equal);
    }
    hasher.finish()
}

/// Makes all NaNs one.
fn equal_nans(bytes: &mut [u8], dtype: DType) {
    macro_rules! floats {
        ($float:ty) => {
            for bytes in bytes.chunks_exact_mut(size_of::<$float>()) {
                let x = <$float>::from_ne_bytes((&*bytes).try_into().expect("chunks of its size"));
                let is_nan = x.is_nan();
                bytes.iter_mut().for_each(|byte| *byte = if is_nan { 0xff } else { *byte });
            }
        };
    }
    match dtype {
        DType::Float32 => floats!(f32),
        DType::Float64 => floats!(f64),
        DType::Float16 => floats!(half::f16),
        DType::BFloat16 => floats!(half::bf16),
        _ => (),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Of any number of elements at once, be it their signs alone.
        #[test]
        fn changes_are_seen(
            mut bytes in prop::collection::vec(any::<u8>(), 8..10_000),
            places in prop::collection::vec(any::<prop::sample::Index>(), 1..5),
            mask in prop::sample::select(vec![0x80u8, 1, 0x81]),
            dtype in prop::sample::select(&DType::ALL[..4]),
        ) {
            // Numbers, of which none is nor becomes a NaN.
            bytes.truncate(bytes.len() / 8 * 8);
            bytes.iter_mut().for_each(|byte| *byte &= 0x83);
            let before = hash(&bytes, dtype);
            let (was, size) = (bytes.clone(), dtype.size());
            for place in places {
                let last = place.index(bytes.len() / size) * size + size - 1;
                bytes[last] ^= mask;
            }
            prop_assert_eq!(hash(&bytes, dtype) == before, bytes == was);
        }
    }

    #[test]
    fn nans_are_equal_and_zeros_are_not() {
        let of = |x: f64| hash(&[x.to_ne_bytes(), 1f64.to_ne_bytes()].concat(), DType::Float64);
        assert_eq!(of(f64::NAN), of(-f64::from_bits(f64::NAN.to_bits() | 5)));
        assert_ne!(of(0.0), of(-0.0));
    }
}
