//! Edits to a draft.

use smallvec::SmallVec;

use super::{Draft, Step};
use crate::graph::{Place, Queue, Role};

impl Draft {
    /// Puts a step in place of another, or in a gap.
    pub fn replace(&mut self, n: usize, step: Step) {
        self.remove(n);
        self.steps[n] = Some(step);
        self.note(n);
    }

    /// Removes a step.
    pub fn remove(&mut self, n: usize) {
        let Some(step) = self.steps[n].take() else { return };
        if step.op.effects.host {
            self.hosts.retain(|host| *host != n);
        }
        for place in step.places() {
            let uses = &mut self.uses[place.block as usize];
            uses.readers.retain(|reader| *reader != n);
            uses.writers.retain(|writer| *writer != n);
        }
    }

    /// Copies some steps into a queue of their own, to be run before the rest; returns it with the
    /// roles of its blocks. The steps to `remove` leave this draft, and the `kept` blocks, which
    /// they produce, become captured.
    pub fn take(&mut self, steps: &[usize], remove: &[usize], kept: &[u32]) -> (Queue, Vec<Role>) {
        let (mut queue, mut roles) = (self.queue.without_nodes(), self.roles.clone());
        for step in steps.iter().filter_map(|&n| self.steps[n].as_ref()) {
            let op = step.op.clone();
            queue.push_placed(op, &step.inputs, &step.outputs, step.origin);
        }
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
            for reader in self.uses[left_out.block as usize].readers.clone() {
                let mut step = self.steps[reader].clone().expect("it reads");
                point(&mut step.inputs, left_out.block, kept.block);
                self.replace(reader, step);
            }
        }
    }

    /// Makes step `n` write a new block in place of `block`, which it overwrites completely, and
    /// points all later steps at the new one.
    pub fn rename(&mut self, block: u32, n: usize) {
        let uses = &self.uses[block as usize];
        let later = uses.readers.iter().chain(&uses.writers).copied().filter(|&user| user > n);
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
        if step.op.effects.host {
            insert(&mut self.hosts, n);
        }
        for place in &step.inputs {
            insert(&mut self.uses[place.block as usize].readers, n);
        }
        for place in &step.outputs {
            insert(&mut self.uses[place.block as usize].writers, n);
        }
    }
}

/// Redirects places from one block to another.
fn point(places: &mut [Place], from: u32, to: u32) {
    places.iter_mut().filter(|place| place.block == from).for_each(|place| place.block = to);
}

/// Inserts a number into an ascending list unless it is already there.
fn insert<A: smallvec::Array<Item = usize>>(list: &mut SmallVec<A>, n: usize) {
    if let Err(place) = list.binary_search(&n) {
        list.insert(place, n);
    }
}
