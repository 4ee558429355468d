//! Changing a draft.

use smallvec::SmallVec;

use super::{Draft, Step};
use crate::graph::{Place, Queue, Role};

impl Draft {
    /// Puts a step in the place of another one, or of a gap.
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

    /// Copies some steps into a queue of their own, which is run before the others; answers it, and
    /// the roles of its blocks. Of the steps, those to `remove` are here no more, and what they make
    /// of `kept` is there before the others run.
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

    /// Leaves out step `n`, whose outputs are what those of an earlier step are: who read its
    /// reads theirs.
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

    /// Has step `n` write a new block, and all steps behind it name that, in the place of one that
    /// it writes whole.
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

    /// Enters a step into the blocks' uses, and into the list of those that run user code.
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

/// Has places in one block be those in another one.
fn point(places: &mut [Place], from: u32, to: u32) {
    places.iter_mut().filter(|place| place.block == from).for_each(|place| place.block = to);
}

/// Inserts a number into an ascending list that may have it already.
fn insert<A: smallvec::Array<Item = usize>>(list: &mut SmallVec<A>, n: usize) {
    if let Err(place) = list.binary_search(&n) {
        list.insert(place, n);
    }
}
