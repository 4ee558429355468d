//! A queue of operations that refer to their blocks by number, and the kernels of its operations.

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::block::Block;
use crate::error::Result;
use crate::kernels::Prepared;
use crate::ops::{Call, Meta, View};

/// A view of a block, with the block given by number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The block's number.
    pub block: u32,
    /// The offset of the first element, in elements.
    pub offset: usize,
    /// The dtype, shape and strides.
    pub meta: Arc<Meta>,
}

impl Place {
    /// The range of the block's bytes that the view spans, which may include gaps.
    pub fn byte_range(&self) -> Range<usize> {
        self.meta.byte_range(self.offset)
    }

    /// Whether it covers each element of a block of `bytes` bytes exactly once.
    pub fn is_whole(&self, bytes: usize) -> bool {
        self.meta.fills(self.offset, bytes)
    }
}

/// A recorded operation and its places.
#[derive(Clone, Debug)]
pub struct Op {
    /// The operation, and the metas of its places.
    pub call: Arc<Call>,
    /// What it reads.
    pub inputs: SmallVec<[Place; 4]>,
    /// What it writes; a state output is the same place as its input.
    pub outputs: SmallVec<[Place; 2]>,
    /// The number of its [`Origin`](crate::graph::Origin) in the recording.
    pub origin: u32,
}

impl Op {
    /// All places, inputs first.
    pub fn places(&self) -> impl Iterator<Item = &Place> {
        self.inputs.iter().chain(&self.outputs)
    }

    /// Whether its inputs' values can make it fail. Updates of states are left out, which fail only
    /// by a number that they share, of steps or positions.
    pub fn may_fail(&self) -> bool {
        self.call.effects.state.is_empty() && self.call.kind.family().may_fail()
    }

    /// Whether its inputs' values can make it fail, and all of those are in blocks that are `given`,
    /// so that they can be checked before a run.
    pub fn is_checked_before(&self, given: impl Fn(u32) -> bool) -> bool {
        let checked = self.call.kind.family().checked();
        !checked.is_empty() && checked.iter().all(|&i| given(self.inputs[i].block))
    }
}

/// Operations in submission order, and the blocks that they use.
#[derive(Default, Clone, Debug)]
pub struct Queue {
    ops: Vec<Op>,
    blocks: Vec<Arc<Block>>,
    numbers: FxHashMap<usize, u32>,
    /// Blocks that share the number of another one, kept alive so that their addresses stay unique.
    others: Vec<Arc<Block>>,
}

impl Queue {
    /// The operations.
    pub fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// The blocks, by number.
    pub fn blocks(&self) -> &[Arc<Block>] {
        &self.blocks
    }

    /// The sizes of the blocks in bytes, by number.
    pub fn sizes(&self) -> Vec<usize> {
        self.blocks.iter().map(|block| block.bytes()).collect()
    }

    /// Reserves room for one more operation with `views` views. Growing doubles the queue at once,
    /// so the allocation may fail.
    ///
    /// # Errors
    /// The approximate number of bytes, if they cannot be allocated.
    pub fn make_room(&mut self, views: usize) -> Result<(), usize> {
        let bytes = self.ops.len() * size_of::<Op>();
        let refusal = |_| 2 * bytes;
        self.ops.try_reserve(1).map_err(refusal)?;
        self.blocks.try_reserve(views).map_err(refusal)?;
        self.numbers.try_reserve(views).map_err(|_| 2 * bytes)
    }

    /// Appends an operation. `outputs` are the non-state outputs, in order.
    pub fn push(&mut self, call: Arc<Call>, inputs: &[View], outputs: &[View], origin: u32) {
        let inputs: SmallVec<[Place; 4]> = inputs.iter().map(|view| self.place(view)).collect();
        let mut fresh = outputs.iter();
        let place = |o: usize| match call.state_of(o) {
            Some(i) => inputs[i].clone(),
            None => self.place(fresh.next().expect("one view an output")),
        };
        let outputs = (0..call.outputs.len()).map(place).collect();
        self.ops.push(Op { call, inputs, outputs, origin });
    }

    /// Appends an operation on places of blocks that the queue already uses.
    pub fn push_op(&mut self, op: Op) {
        self.ops.push(op);
    }

    /// The same queue with its operations in another order, a permutation of their numbers.
    pub(in crate::graph) fn sorted(&self, order: &[u32]) -> Queue {
        let ops = order.iter().map(|&n| self.ops[n as usize].clone()).collect();
        Queue { ops, ..self.without_ops() }
    }

    /// The operations, to be changed.
    #[cfg(test)]
    pub fn ops_mut(&mut self) -> &mut [Op] {
        &mut self.ops
    }

    /// Takes the operations out.
    pub(in crate::graph) fn take_ops(&mut self) -> Vec<Op> {
        std::mem::take(&mut self.ops)
    }

    /// A queue with the same blocks and no operations.
    pub fn without_ops(&self) -> Queue {
        Queue {
            ops: Vec::new(),
            blocks: self.blocks.clone(),
            numbers: self.numbers.clone(),
            others: self.others.clone(),
        }
    }

    /// The view as a place; its block gets a number if it is new.
    pub fn place(&mut self, view: &View) -> Place {
        let block = self.number(&view.block);
        Place { block, offset: view.offset, meta: view.meta.clone() }
    }

    /// The block's number, assigned if the block is new.
    pub fn number(&mut self, block: &Arc<Block>) -> u32 {
        *self.numbers.entry(Arc::as_ptr(block).addr()).or_insert_with(|| {
            self.blocks.push(block.clone());
            self.blocks.len() as u32 - 1
        })
    }

    /// Gives another block the number of one that the queue already uses.
    pub fn rename(&mut self, block: Arc<Block>, number: u32) {
        self.numbers.insert(Arc::as_ptr(&block).addr(), number);
        self.others.push(block);
    }

    /// The same operations without the blocks that they use.
    pub fn without_blocks(self) -> Queue {
        Queue { ops: self.ops, ..Queue::default() }
    }

    /// The block's number, if the queue uses it.
    pub fn find(&self, block: &Arc<Block>) -> Option<u32> {
        self.numbers.get(&Arc::as_ptr(block).addr()).copied()
    }

    /// The operations and the sizes of the blocks; the blocks are released.
    pub(in crate::graph) fn into_parts(self) -> (Vec<Op>, Vec<usize>) {
        let bytes = self.sizes();
        (self.ops, bytes)
    }
}

/// A prepared kernel for each call of a queue, by the address of the call, which it keeps alive.
#[derive(Clone, Default, Debug)]
pub struct Kernels(FxHashMap<usize, (Arc<Call>, Arc<Prepared>)>);

impl Kernels {
    /// Prepares the kernels of a queue's operations, each distinct call once.
    ///
    /// # Errors
    /// Any error of `prepare`.
    pub fn of(
        queue: &Queue,
        mut prepare: impl FnMut(&Arc<Call>) -> Result<Arc<Prepared>>,
    ) -> Result<Kernels> {
        let mut kernels = Kernels::default();
        for op in queue.ops() {
            if kernels.find(&op.call).is_none() {
                kernels.insert(&op.call, prepare(&op.call)?);
            }
        }
        Ok(kernels)
    }

    /// Sets the kernel of a call.
    pub fn insert(&mut self, call: &Arc<Call>, kernel: Arc<Prepared>) {
        self.0.insert(Arc::as_ptr(call).addr(), (call.clone(), kernel));
    }

    /// The kernel of a call, if it is one of the queue's.
    pub fn find(&self, call: &Arc<Call>) -> Option<&Arc<Prepared>> {
        self.0.get(&Arc::as_ptr(call).addr()).map(|(_, kernel)| kernel)
    }

    /// The kernel of an operation of the queue, wherever it stands now.
    pub fn get(&self, op: &Op) -> &Arc<Prepared> {
        self.find(&op.call).expect("all calls of the queue were prepared")
    }

    /// Bytes of scratch that an operation needs.
    pub fn scratch(&self, op: &Op) -> usize {
        self.get(op).kernel.scratch()
    }
}

#[cfg(test)]
mod tests;
