//! A queue of operations that refer to their blocks by number.

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::block::Block;
use crate::kernels::Prepared;
use crate::ops::{Meta, View};

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
        self.meta.bytes() == bytes && self.byte_range() == (0..bytes)
    }
}

/// An operation in a queue. Its places are stored in the queue, inputs before outputs.
#[derive(Clone, Debug)]
pub struct Node {
    /// The operation.
    pub op: Arc<Prepared>,
    /// The line of the user's program that it comes from, by the recorder's number for the line.
    pub origin: u32,
    first: u32,
    inputs: u32,
    outputs: u32,
}

impl Node {
    /// Its inputs, given the places of all nodes.
    pub(super) fn inputs<'a>(&self, places: &'a [Place]) -> &'a [Place] {
        &places[self.first as usize..][..self.inputs as usize]
    }

    /// Its outputs, given the places of all nodes.
    pub(super) fn outputs<'a>(&self, places: &'a [Place]) -> &'a [Place] {
        &places[self.first as usize + self.inputs as usize..][..self.outputs as usize]
    }
}

/// Operations in submission order, and the blocks that they use.
#[derive(Default, Clone, Debug)]
pub struct Queue {
    nodes: Vec<Node>,
    places: Vec<Place>,
    blocks: Vec<Arc<Block>>,
    numbers: FxHashMap<usize, u32>,
    /// Blocks that share the number of another one, kept alive so that their addresses stay unique.
    others: Vec<Arc<Block>>,
}

impl Queue {
    /// The operations.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The blocks, by number.
    pub fn blocks(&self) -> &[Arc<Block>] {
        &self.blocks
    }

    /// The sizes of the blocks in bytes, by number.
    pub fn sizes(&self) -> Vec<usize> {
        self.blocks.iter().map(|block| block.bytes()).collect()
    }

    /// The places of all operations.
    pub(super) fn places(&self) -> &[Place] {
        &self.places
    }

    /// What a node reads.
    pub fn inputs(&self, node: &Node) -> &[Place] {
        node.inputs(&self.places)
    }

    /// What a node writes; a state output is the same place as its input.
    pub fn outputs(&self, node: &Node) -> &[Place] {
        node.outputs(&self.places)
    }

    /// Reserves room for one more operation with `views` views. Growing doubles the queue at once,
    /// so the allocation may fail.
    ///
    /// # Errors
    /// The approximate number of bytes, if they cannot be allocated.
    pub fn make_room(&mut self, views: usize) -> Result<(), usize> {
        let bytes = self.places.len() * size_of::<Place>() + self.nodes.len() * size_of::<Node>();
        let refusal = |_| 2 * bytes;
        self.nodes.try_reserve(1).map_err(refusal)?;
        self.places.try_reserve(views).map_err(refusal)?;
        self.blocks.try_reserve(views).map_err(refusal)?;
        self.numbers.try_reserve(views).map_err(|_| 2 * bytes)
    }

    /// Appends an operation. `outputs` are the non-state outputs, in order.
    pub fn push(&mut self, op: Arc<Prepared>, inputs: &[View], outputs: &[View], origin: u32) {
        let first = self.places.len() as u32;
        for view in inputs {
            let place = self.place(view);
            self.places.push(place);
        }
        let mut fresh = outputs.iter();
        for o in 0..op.outputs.len() {
            let place = match op.state_of(o) {
                Some(i) => self.places[first as usize + i].clone(),
                None => self.place(fresh.next().expect("one view an output")),
            };
            self.places.push(place);
        }
        let (inputs, outputs) = (inputs.len() as u32, op.outputs.len() as u32);
        self.nodes.push(Node { op, origin, first, inputs, outputs });
    }

    /// Appends an operation on places of blocks that the queue already uses.
    pub fn push_placed(
        &mut self,
        op: Arc<Prepared>,
        inputs: &[Place],
        outputs: &[Place],
        origin: u32,
    ) {
        let first = self.places.len() as u32;
        self.places.extend(inputs.iter().chain(outputs).cloned());
        let (inputs, outputs) = (inputs.len() as u32, outputs.len() as u32);
        self.nodes.push(Node { op, origin, first, inputs, outputs });
    }

    /// Replaces each operation for which `other` returns one with the same inputs and outputs;
    /// `other` gets the views that the operation reads and writes.
    pub fn replace_each<E>(
        &mut self,
        mut other: impl FnMut(&Arc<Prepared>, &[View], &[View]) -> Result<Option<Arc<Prepared>>, E>,
    ) -> Result<(), E> {
        let (blocks, places) = (&self.blocks, &self.places);
        let view = |place: &Place| View {
            block: blocks[place.block as usize].clone(),
            meta: place.meta.clone(),
            offset: place.offset,
        };
        for node in &mut self.nodes {
            let inputs: Vec<View> = node.inputs(places).iter().map(view).collect();
            let outputs: Vec<View> = node.outputs(places).iter().map(view).collect();
            if let Some(op) = other(&node.op, &inputs, &outputs)? {
                node.op = op;
            }
        }
        Ok(())
    }

    /// The operations in another order, a permutation of their numbers.
    pub(super) fn sorted(&self, order: &[u32]) -> Vec<Node> {
        order.iter().map(|&n| self.nodes[n as usize].clone()).collect()
    }

    /// The same queue with these nodes, which refer to its places.
    pub(super) fn with_nodes(&self, nodes: Vec<Node>) -> Queue {
        Queue { nodes, places: self.places.clone(), ..self.without_nodes() }
    }

    /// A queue with the same blocks and no operations.
    pub fn without_nodes(&self) -> Queue {
        Queue {
            nodes: Vec::new(),
            places: Vec::new(),
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
        Queue { nodes: self.nodes, places: self.places, ..Queue::default() }
    }

    /// The block's number, if the queue uses it.
    pub fn find(&self, block: &Arc<Block>) -> Option<u32> {
        self.numbers.get(&Arc::as_ptr(block).addr()).copied()
    }

    /// The operations, their places and the sizes of the blocks; the blocks are released.
    pub(super) fn into_parts(self) -> (Vec<Node>, Vec<Place>, Vec<usize>) {
        let bytes = self.sizes();
        (self.nodes, self.places, bytes)
    }
}

#[cfg(test)]
mod tests;
