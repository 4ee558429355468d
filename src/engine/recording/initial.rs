//! State created while recording: its operations are deferred as initialisers of its blocks, and
//! run when one of the blocks is needed.

use std::sync::{Arc, Mutex, Weak};

use crate::block::{Block, Initialiser};
use crate::device::Device;
use crate::error::{Result, locked};
use crate::graph::{Place, Queue};
use crate::kernels::Prepared;
use crate::ops::{Call, View};

/// Operations that create state, still being collected.
#[derive(Default)]
pub(in crate::engine) struct Initial {
    queue: Queue,
}

impl Initial {
    /// Whether an operation computes new state only from state collected here and a generator.
    pub fn takes(&self, inputs: &[View], outputs: &[View], generator: Option<usize>) -> bool {
        let is_new = |view: &View| {
            !view.block.is_lent() && (self.queue.find(&view.block).is_some() || is_blank(view))
        };
        let known = |(i, view): (usize, &View)| {
            Some(i) == generator || self.queue.find(&view.block).is_some()
        };
        inputs.iter().enumerate().all(known) && outputs.iter().all(is_new)
    }

    /// Appends an operation that [`Initial::takes`] accepts.
    pub fn push(&mut self, call: &Arc<Call>, inputs: &[View], outputs: &[View]) {
        self.queue.push(call.clone(), inputs, outputs, 0);
    }

    /// Ends the collection and makes the blocks pending.
    pub fn settle(self) {
        if self.queue.ops().is_empty() {
            return;
        }
        let program = Arc::new(Program(Mutex::new(None)));
        let held = |block: &Arc<Block>| match Arc::strong_count(block) > 1 && !block.is_allocated()
        {
            true => Held::Elsewhere(Arc::downgrade(block), block.device().clone(), block.bytes()),
            false => Held::Here(block.clone()),
        };
        let blocks: Vec<Held> = self.queue.blocks().iter().map(held).collect();
        for (block, held) in self.queue.blocks().iter().zip(&blocks) {
            if matches!(held, Held::Elsewhere(..)) {
                block.postpone(program.clone());
            }
        }
        let queue = self.queue.without_blocks();
        *locked(&program.0) = Some(Steps { queue, blocks });
    }
}

/// Whether a tensor's block has neither memory nor a pending value.
fn is_blank(view: &View) -> bool {
    !view.block.is_allocated() && !view.block.is_waiting()
}

/// A block of a program. Blocks held elsewhere are weak references, because they own the program.
enum Held {
    Here(Arc<Block>),
    Elsewhere(Weak<Block>, Arc<Device>, usize),
}

impl Held {
    /// The block, or a substitute if it is gone or has got a value by other means.
    fn block(&self) -> Arc<Block> {
        match self {
            Held::Here(block) => block.clone(),
            Held::Elsewhere(block, device, bytes) => {
                let waiting = block.upgrade().filter(|block| block.take_pending());
                waiting.unwrap_or_else(|| Block::new(device, *bytes))
            }
        }
    }
}

struct Steps {
    queue: Queue,
    blocks: Vec<Held>,
}

/// The initialiser of a scope's state; empty once it has run.
struct Program(Mutex<Option<Steps>>);

impl Steps {
    fn run(&self, blocks: &[Arc<Block>]) -> Result<()> {
        let view = |place: &Place| View {
            block: blocks[place.block as usize].clone(),
            meta: place.meta.clone(),
            offset: place.offset,
        };
        for op in self.queue.ops() {
            let inputs: Vec<View> = op.inputs.iter().map(view).collect();
            let outputs = op.outputs.iter().enumerate();
            let fresh = outputs.filter(|(o, _)| op.call.state_of(*o).is_none());
            let outputs: Vec<View> = fresh.map(|(_, place)| view(place)).collect();
            let device = blocks[0].device();
            let prepared = Prepared::new(op.call.clone(), device, device.threads())?;
            prepared.catch_up(&inputs, &outputs)?; // for tapes may have saved what it writes
        }
        Ok(())
    }
}

impl Initialiser for Program {
    fn run(self: Arc<Self>) -> Result<()> {
        let mut place = locked(&self.0);
        let Some(steps) = place.take() else { return Ok(()) };
        let blocks: Vec<Arc<Block>> = steps.blocks.iter().map(Held::block).collect();
        let done = steps.run(&blocks);
        if done.is_err() {
            // Make the blocks pending again, so that the next use retries.
            let waits = |held: &&Held| matches!(held, Held::Elsewhere(..));
            for (_, block) in steps.blocks.iter().zip(&blocks).filter(|(held, _)| waits(held)) {
                block.retract(self.clone());
            }
            *place = Some(steps);
        }
        done
    }
}
