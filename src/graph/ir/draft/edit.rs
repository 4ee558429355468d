//! Edits to a draft.

use smallvec::SmallVec;

use super::Draft;
use crate::graph::{Op, Place, Queue, Role};

impl Draft {
    /// Puts a step in place of another, or in a gap.
    pub fn replace(&mut self, n: usize, step: Op) {
        self.remove(n);
        self.steps[n] = Some(step);
        self.note(n);
    }

    /// Removes a step.
    pub fn remove(&mut self, n: usize) {
        let Some(step) = self.steps[n].take() else { return };
        if step.call.effects.host {
            self.hosts.remove(n);
        }
        for place in step.places() {
            let uses = &mut self.uses[place.block as usize];
            uses.readers.remove(n);
            uses.writers.remove(n);
        }
    }

    /// The current queue, and the roles of its blocks.
    pub fn finish(&self) -> (Queue, Vec<Role>) {
        let mut queue = self.queue.without_ops();
        self.steps().for_each(|(_, step)| queue.push_op(step.clone()));
        (queue, self.roles.clone())
    }

    /// Copies some steps into a queue of their own, to be run before the rest; returns it with the
    /// roles of its blocks. The steps to `remove` leave this draft, and the `kept` blocks, which
    /// they produce, become captured.
    pub fn take(&mut self, steps: &[usize], remove: &[usize], kept: &[u32]) -> (Queue, Vec<Role>) {
        let (mut queue, mut roles) = (self.queue.without_ops(), self.roles.clone());
        let steps = steps.iter().filter_map(|&n| self.steps[n].as_ref());
        steps.for_each(|step| queue.push_op(step.clone()));
        remove.iter().for_each(|&n| self.remove(n));
        for &block in kept {
            roles[block as usize] = Role::Slot;
            self.roles[block as usize] = Role::Captured;
        }
        (queue, roles)
    }

    /// Removes step `n`, whose outputs equal those of an earlier step: its readers read the earlier
    /// step's outputs instead.
    pub fn merge(&mut self, before: usize, n: usize) {
        let outputs = |n: usize| self.steps[n].as_ref().map(|step| step.outputs.clone());
        let (Some(kept), Some(left_out)) = (outputs(before), outputs(n)) else { return };
        self.remove(n);
        for (kept, left_out) in kept.iter().zip(&left_out) {
            self.redirect(left_out.block, kept.block);
        }
    }

    /// Lets all readers of a block read another one instead.
    pub fn redirect(&mut self, from: u32, to: u32) {
        for reader in self.readers(from).clone().iter() {
            let mut step = self.step(reader).cloned().expect("it reads");
            point(&mut step.inputs, from, to);
            self.replace(reader, step);
        }
    }

    /// Makes step `n` write a new block in place of `block`, which it overwrites completely, and
    /// points all later steps at the new one.
    pub fn rename(&mut self, block: u32, n: usize) {
        let uses = &self.uses[block as usize];
        let later = uses.readers.iter().chain(uses.writers.iter()).filter(|&user| user > n);
        let later: SmallVec<[usize; 8]> = later.collect();
        let mut step = self.steps[n].clone().expect("it writes the block");
        let new = self.temporary(&step.outputs[0].meta).block;
        point(&mut step.outputs, block, new);
        self.replace(n, step);
        for user in later {
            let mut step = self.steps[user].clone().expect("it names the block");
            point(&mut step.inputs, block, new);
            point(&mut step.outputs, block, new);
            self.replace(user, step);
        }
    }

    /// Records a step in its blocks' uses and, if it runs user code, in `hosts`.
    pub(super) fn note(&mut self, n: usize) {
        let Some(step) = &self.steps[n] else { return };
        if step.call.effects.host {
            self.hosts.insert(n);
        }
        for place in &step.inputs {
            self.uses[place.block as usize].readers.insert(n);
        }
        for place in &step.outputs {
            self.uses[place.block as usize].writers.insert(n);
        }
    }
}

/// Redirects places from one block to another.
fn point(places: &mut [Place], from: u32, to: u32) {
    places.iter_mut().filter(|place| place.block == from).for_each(|place| place.block = to);
}
