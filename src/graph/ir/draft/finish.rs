//! The queue that a draft results in.

use smallvec::SmallVec;

use super::Draft;
use crate::graph::peak::peak;
use crate::graph::{Kernels, Op, Queue, Role};
use crate::ops::View;

/// A step that is run again, because blocks that it produces are dropped after a use and needed
/// later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Again {
    /// The step.
    pub maker: usize,
    /// The blocks that were dropped and that it recomputes.
    pub blocks: SmallVec<[u32; 2]>,
    /// The step before which it is run again.
    pub before: usize,
}

/// Replaces each block by the one that currently stands for it.
fn rename(op: &mut Op, names: &[u32]) {
    for place in op.inputs.iter_mut().chain(&mut op.outputs) {
        place.block = names.get(place.block as usize).copied().unwrap_or(place.block);
    }
}

impl Draft {
    /// The most bytes that are live at once in the queue of [`Draft::finish`].
    pub fn peak(&self, again: &[Again], kernels: &Kernels) -> usize {
        let (queue, roles) = self.finish(again);
        peak(&queue, &roles, kernels)
    }

    /// The current queue, including the steps in `again`, which must be in order, and the roles of
    /// its blocks.
    pub fn finish(&self, again: &[Again]) -> (Queue, Vec<Role>) {
        let names = Vec::from_iter(0..self.roles.len() as u32);
        let mut writer = Writer { draft: self, queue: self.queue.without_ops(), names };
        let mut again = again.iter().peekable();
        for (n, step) in self.steps() {
            while let Some(again) = again.next_if(|again| again.before <= n) {
                writer.repeat(again);
            }
            writer.push(step.clone());
        }
        let mut roles = self.roles.clone();
        roles.resize(writer.queue.blocks().len(), Role::Temporary);
        (writer.queue, roles)
    }
}

/// Writes a draft to a queue.
struct Writer<'a> {
    draft: &'a Draft,
    queue: Queue,
    /// By block of the draft: the block that currently stands for it.
    names: Vec<u32>,
}

impl Writer<'_> {
    fn push(&mut self, mut step: Op) {
        rename(&mut step, &self.names);
        self.queue.push_op(step);
    }

    /// Runs a step into new blocks, which stand for the dropped ones from then on.
    fn repeat(&mut self, again: &Again) {
        let recorded = self.draft.step(again.maker).expect("makers stay");
        let mut step = recorded.clone();
        rename(&mut step, &self.names);
        for (output, old) in step.outputs.iter_mut().zip(&recorded.outputs) {
            *output = self.queue.place(&View::of(&self.draft.device, &old.meta));
            if again.blocks.contains(&old.block) {
                self.names[old.block as usize] = output.block;
            }
        }
        self.queue.push_op(step);
    }
}
