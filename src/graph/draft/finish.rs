//! The queue that a draft has become.

use smallvec::SmallVec;

use super::{Draft, Step};
use crate::graph::peak::peak;
use crate::graph::{Queue, Role};
use crate::ops::View;

/// A step that runs once more, since blocks that it makes are dropped after a use and needed later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Again {
    /// The step.
    pub maker: usize,
    /// Those of its blocks that are dropped.
    pub blocks: SmallVec<[u32; 2]>,
    /// The step before which it runs.
    pub before: usize,
}

impl Step {
    /// Gives blocks the names that they have now.
    fn rename(&mut self, names: &[u32]) {
        for place in self.inputs.iter_mut().chain(&mut self.outputs) {
            place.block = names.get(place.block as usize).copied().unwrap_or(place.block);
        }
    }
}

impl Draft {
    /// The most bytes that live at once in [`Draft::finish`]'s queue.
    pub fn peak(&self, again: &[Again]) -> usize {
        let (queue, roles) = self.finish(again);
        peak(&queue, queue.nodes(), &roles)
    }

    /// The queue as it stands now, with the steps that run again, which are given in their order;
    /// and the roles of its blocks.
    pub fn finish(&self, again: &[Again]) -> (Queue, Vec<Role>) {
        let names = Vec::from_iter(0..self.roles.len() as u32);
        let mut writer = Writer { draft: self, queue: self.queue.without_nodes(), names };
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

/// A queue that a draft is written to.
struct Writer<'a> {
    draft: &'a Draft,
    queue: Queue,
    /// The block that stands for each of the draft's now.
    names: Vec<u32>,
}

impl Writer<'_> {
    fn push(&mut self, mut step: Step) {
        step.rename(&self.names);
        self.queue.push_placed(step.op, &step.inputs, &step.outputs, step.origin);
    }

    /// Runs a step into blocks that from now on stand for those that were dropped.
    fn repeat(&mut self, again: &Again) {
        let recorded = self.draft.step(again.maker).expect("makers stay");
        let mut step = recorded.clone();
        step.rename(&self.names);
        for (output, old) in step.outputs.iter_mut().zip(&recorded.outputs) {
            *output = self.queue.place(&View::of(&self.draft.device, &old.meta));
            if again.blocks.contains(&old.block) {
                self.names[old.block as usize] = output.block;
            }
        }
        self.queue.push_placed(step.op, &step.inputs, &step.outputs, step.origin);
    }
}
