//! Bitwise comparison of a run of a graph with a run of the operations as recorded.

use std::hash::Hasher;
use std::sync::Arc;

use rustc_hash::FxHasher;

use crate::block::Block;
use crate::device::heap;
use crate::dtype::DType;
use crate::engine::executable::Executable;
use crate::engine::{Engine, Run};
use crate::error::{Error, Result};
use crate::graph::{Graph, Op};
use crate::ops::View;

/// The contents of the blocks that outlive a run: number, and a hash of the bytes.
type Left = Vec<(u32, u64)>;

/// The outcome of a comparison.
pub struct Compared {
    /// The results of the operations as recorded.
    pub results: Vec<View>,
    /// What the graph computes differently, if anything: a bug.
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
        let updates = self.updates(arguments);
        let got = self.aside(arguments, |bound, made| {
            engine.poison(&self.arena, self.arena_bytes());
            let mut seen = Left::new();
            let run = |nodes| self.replay(engine, &mut run, bound, nodes);
            self.undone(&updates, run, |update| {
                seen.extend(recorded.hashed(update.number, &update.block));
            })?;
            Ok(recorded.left(self, made, arguments, seen))
        });
        if let Err(error @ Error::OutOfMemory { .. }) = got {
            return Err(error);
        }
        // What was saved must not add to what the second run takes.
        heap::release();
        let (results, want) = recorded.run_and(engine, run, arguments, |made| {
            recorded.left(recorded, made, arguments, Left::new())
        })?;
        let difference = match got {
            Ok(got) => self.difference(&got, &want),
            Err(error) => Some(format!("it fails where the recorded operations do not: {error}")),
        };
        Ok(Compared { results, difference })
    }

    /// What a run of this graph left, or one of `ran`, which has the same block numbers and produced
    /// these blocks; of some, that has been `seen`.
    fn left(&self, ran: &Executable, made: &[Arc<Block>], given: &[View], seen: Left) -> Left {
        let made = ran.slots.iter().map(|slot| slot.block).zip(made.iter().cloned());
        let own = |(n, _): &(u32, Arc<Block>)| self.slots.iter().any(|slot| slot.block == *n);
        let is_new = |n: &u32| seen.iter().all(|(number, _)| number != n);
        let updated = self.updated(given).into_iter();
        let updated = updated.filter(|(n, block)| is_new(n) && block.is_allocated());
        let left = made.filter(own).chain(updated);
        let mut left: Left = left.filter_map(|(n, block)| self.hashed(n, &block)).collect();
        left.extend(seen);
        left
    }

    fn hashed(&self, number: u32, block: &Block) -> Option<(u32, u64)> {
        let bits = |bytes: &[u8]| hash(bytes, dtype(&self.graph, number));
        block.read(bits).ok().map(|hash| (number, hash))
    }

    /// The first block in which two runs differ, in words.
    fn difference(&self, got: &Left, want: &Left) -> Option<String> {
        let is_same = |one: &&(u32, u64)| got.contains(one);
        let (block, _) = want.iter().find(|one| !is_same(one))?;
        let writes =
            |n: &usize| self.graph.ops()[*n].outputs.iter().any(|place| place.block == *block);
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

/// The element type of a block: a float type if some operation accesses it as floats.
fn dtype(graph: &Graph, block: u32) -> DType {
    let places = graph.ops().iter().flat_map(Op::places);
    let dtypes = places.filter(|place| place.block == block).map(|place| place.meta.dtype);
    dtypes.max_by_key(|dtype| dtype.is_float()).unwrap_or(DType::UInt8)
}

/// A hash of a block's contents. All NaNs are equal: which operand's NaN bits a processor
/// propagates is not defined.
fn hash(bytes: &[u8], dtype: DType) -> u64 {
    let mut hasher = FxHasher::default();
    macro_rules! floats {
        ($float:ty, $bits:ty) => {
            bytes.chunks_exact(size_of::<$float>()).for_each(|bytes| {
                let bits = <$bits>::from_ne_bytes(bytes.try_into().expect("chunks of its size"));
                let is_nan = <$float>::from_bits(bits).is_nan();
                hasher.write_u64(if is_nan { u64::MAX } else { bits.into() });
            })
        };
    }
    match dtype {
        DType::Float32 => floats!(f32, u32),
        DType::Float64 => floats!(f64, u64),
        DType::Float16 => floats!(half::f16, u16),
        DType::BFloat16 => floats!(half::bf16, u16),
        _ => hasher.write(bytes),
    }
    hasher.finish()
}
