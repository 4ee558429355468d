//! A queue of operations that refer to their blocks by number.

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::block::Block;
use crate::ops::{Meta, Prepared, View};

/// A view of a block that is known by its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The block's number.
    pub block: u32,
    /// The first element's place, in elements.
    pub offset: usize,
    /// What lies there.
    pub meta: Arc<Meta>,
}

impl Place {
    /// The bytes of the block from the lowest to the highest that belong to the view.
    pub fn byte_range(&self) -> Range<usize> {
        self.meta.byte_range(self.offset)
    }

    /// Whether it is all of a block of so many bytes, element by element.
    pub fn is_whole(&self, bytes: usize) -> bool {
        self.meta.bytes() == bytes && self.byte_range() == (0..bytes)
    }
}

/// An operation in a queue. Its places stand in the queue: inputs first, then outputs.
#[derive(Clone, Debug)]
pub struct Node {
    /// What is done.
    pub op: Arc<Prepared>,
    /// Where the user's program asked for it: the number that the recorder gave the line.
    pub origin: u32,
    first: u32,
    inputs: u32,
    outputs: u32,
}

impl Node {
    /// What it reads, of all places.
    pub(super) fn inputs<'a>(&self, places: &'a [Place]) -> &'a [Place] {
        &places[self.first as usize..][..self.inputs as usize]
    }

    /// What it writes, of all places.
    pub(super) fn outputs<'a>(&self, places: &'a [Place]) -> &'a [Place] {
        &places[self.first as usize + self.inputs as usize..][..self.outputs as usize]
    }
}

/// Operations in the order in which they were submitted, and the blocks that they name.
#[derive(Default, Clone, Debug)]
pub struct Queue {
    nodes: Vec<Node>,
    places: Vec<Place>,
    blocks: Vec<Arc<Block>>,
    numbers: FxHashMap<usize, u32>,
    /// Blocks that go by the number of another one; their addresses must stay theirs.
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

    /// What a node writes; an output that is state is the very place of its input.
    pub fn outputs(&self, node: &Node) -> &[Place] {
        node.outputs(&self.places)
    }

    /// Makes room for one more operation with so many views. Growing takes as much at once as all
    /// that is there, so that it may be refused.
    ///
    /// # Errors
    /// Where there is no memory for it; the number of bytes, more or less.
    pub fn make_room(&mut self, views: usize) -> Result<(), usize> {
        let bytes = self.places.len() * size_of::<Place>() + self.nodes.len() * size_of::<Node>();
        let refusal = |_| 2 * bytes;
        self.nodes.try_reserve(1).map_err(refusal)?;
        self.places.try_reserve(views).map_err(refusal)?;
        self.blocks.try_reserve(views).map_err(refusal)?;
        self.numbers.try_reserve(views).map_err(|_| 2 * bytes)
    }

    /// Appends an operation. `outputs` are those that are not state, in order.
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

    /// Appends an operation on places of blocks that the queue names.
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

    /// Puts another operation of the same inputs and outputs in the place of each, where `other`
    /// answers one; it is told what each reads and writes.
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

    /// The operations in another order, which names each number once.
    pub(super) fn sorted(&self, order: &[u32]) -> Vec<Node> {
        order.iter().map(|&n| self.nodes[n as usize].clone()).collect()
    }

    /// The same with these nodes, which name its places.
    pub(super) fn with_nodes(&self, nodes: Vec<Node>) -> Queue {
        Queue { nodes, places: self.places.clone(), ..self.without_nodes() }
    }

    /// The same blocks without operations.
    pub fn without_nodes(&self) -> Queue {
        Queue {
            nodes: Vec::new(),
            places: Vec::new(),
            blocks: self.blocks.clone(),
            numbers: self.numbers.clone(),
            others: self.others.clone(),
        }
    }

    /// The view with its block's number, which is new where the block is.
    pub fn place(&mut self, view: &View) -> Place {
        let block = self.number(&view.block);
        Place { block, offset: view.offset, meta: view.meta.clone() }
    }

    /// The block's number, which is new where the block is.
    pub fn number(&mut self, block: &Arc<Block>) -> u32 {
        *self.numbers.entry(Arc::as_ptr(block).addr()).or_insert_with(|| {
            self.blocks.push(block.clone());
            self.blocks.len() as u32 - 1
        })
    }

    /// Has another block go by the number of one that the queue names.
    pub fn rename(&mut self, block: Arc<Block>, number: u32) {
        self.numbers.insert(Arc::as_ptr(&block).addr(), number);
        self.others.push(block);
    }

    /// The same operations without the blocks that they name.
    pub fn without_blocks(self) -> Queue {
        Queue { nodes: self.nodes, places: self.places, ..Queue::default() }
    }

    /// The block's number, if the queue names it.
    pub fn find(&self, block: &Arc<Block>) -> Option<u32> {
        self.numbers.get(&Arc::as_ptr(block).addr()).copied()
    }

    /// The operations, their places and the sizes of the blocks, which it lets go of.
    pub(super) fn into_parts(self) -> (Vec<Node>, Vec<Place>, Vec<usize>) {
        let bytes = self.sizes();
        (self.nodes, self.places, bytes)
    }
}

#[cfg(test)]
mod tests;
