//! A queue that is being rewritten.

mod numbers;

use std::sync::Arc;

use smallvec::SmallVec;

use crate::device::Device;
use crate::error::Result;
use crate::graph::{Op, Place, Queue, Role};
use crate::kernels::{self, Target};
use crate::ops::{Call, Kind, Meta, View};
pub use numbers::Numbers;
use numbers::Sequence;

/// The steps that use a block, in order.
#[derive(Default)]
struct Uses {
    writers: Numbers,
    readers: Numbers,
}

/// See the module's documentation. Each step has a number, which it keeps; those of recorded
/// operations ascend. Others can be inserted anywhere, and get the next numbers: which of two steps
/// comes first, [`Draft::is_before`] tells. A removed step leaves a gap in its place.
pub struct Draft {
    device: Arc<Device>,
    queue: Queue,
    roles: Vec<Role>,
    steps: Vec<Option<Op>>,
    order: Sequence,
    uses: Vec<Uses>,
    /// The steps that run user code, and those that may fail, in order.
    hosts: Numbers,
    faults: Numbers,
}

impl Draft {
    /// A draft of a queue's operations; `roles` has one entry per block.
    pub fn new(device: &Arc<Device>, mut queue: Queue, roles: Vec<Role>) -> Draft {
        let steps: Vec<_> = queue.take_ops().into_iter().map(Some).collect();
        let uses = roles.iter().map(|_| Uses::default()).collect();
        let (device, order) = (device.clone(), Sequence::new(steps.len()));
        let [hosts, faults] = Default::default();
        let mut draft = Draft { device, queue, roles, steps, order, uses, hosts, faults };
        (0..draft.steps.len()).for_each(|n| draft.note(n));
        draft
    }

    /// The number of threads that kernels will be prepared for.
    pub fn threads(&self) -> usize {
        self.device.threads()
    }

    /// What runs the operations.
    pub fn target(&self) -> &'static dyn Target {
        kernels::target(&self.device).expect("it is recorded on a device that runs operations")
    }

    /// The numbers of all steps and gaps that there are now, in order.
    pub fn numbers(&self) -> impl DoubleEndedIterator<Item = usize> + use<> {
        self.order.numbers().collect::<Vec<usize>>().into_iter()
    }

    /// One more than the greatest number.
    pub fn end(&self) -> usize {
        self.order.len()
    }

    /// The steps with their numbers, in order.
    pub fn steps(&self) -> impl Iterator<Item = (usize, &Op)> {
        self.order.numbers().filter_map(|n| Some((n, self.step(n)?)))
    }

    /// A step; None for a gap.
    pub fn step(&self, n: usize) -> Option<&Op> {
        self.steps[n].as_ref()
    }

    /// Whether one step comes before another one.
    pub fn is_before(&self, first: usize, second: usize) -> bool {
        self.order.member(first) < self.order.member(second)
    }

    /// Whether there is no step between two.
    pub fn is_right_before(&self, first: usize, second: usize) -> bool {
        let later = self.order.after(first).find(|&n| n == second || self.step(n).is_some());
        later == Some(second)
    }

    /// The size of a block in bytes.
    pub fn bytes(&self, block: u32) -> usize {
        self.queue.blocks()[block as usize].bytes()
    }

    /// The number of blocks.
    pub fn blocks(&self) -> usize {
        self.roles.len()
    }

    /// The role of a block.
    pub fn role(&self, block: u32) -> Role {
        self.roles[block as usize]
    }

    /// The steps that read a block, in order.
    pub fn readers(&self, block: u32) -> &Numbers {
        &self.uses[block as usize].readers
    }

    /// The steps that write a block, in order.
    pub fn writers(&self, block: u32) -> &Numbers {
        &self.uses[block as usize].writers
    }

    /// The only step that reads a block, provided that nothing reads it after the run.
    pub fn only_reader(&self, block: u32) -> Option<usize> {
        self.readers(block).only().filter(|_| self.role(block) == Role::Temporary)
    }

    /// The step that produces a place: the only writer of its block, which this recording creates.
    /// It writes exactly this place, before any step reads the block.
    pub fn maker(&self, place: &Place) -> Option<usize> {
        let is_made = matches!(self.role(place.block), Role::Temporary | Role::Slot);
        let writer = self.writers(place.block).only()?;
        let writes = self.step(writer)?.outputs.iter().any(|output| output == place);
        let reader = self.readers(place.block).first();
        let is_first = reader.is_none_or(|reader| self.is_before(writer, reader));
        (is_made && writes && is_first).then_some(writer)
    }

    /// Whether a place has the same contents after the first step as before the second: no step in
    /// between writes its block.
    pub fn holds(&self, place: &Place, first: usize, second: usize) -> bool {
        !self.writers(place.block).has_within(self.order.between(first, second))
    }

    /// Whether any step between two reads a block.
    pub fn is_read_between(&self, block: u32, first: usize, second: usize) -> bool {
        self.readers(block).has_within(self.order.between(first, second))
    }

    /// Whether user code runs between two steps.
    pub fn has_host_between(&self, first: usize, second: usize) -> bool {
        self.hosts.has_within(self.order.between(first, second))
    }

    /// Whether a step between two may fail.
    pub fn has_fault_between(&self, first: usize, second: usize) -> bool {
        self.faults.has_within(self.order.between(first, second))
    }

    /// Whether a place covers each element of its block exactly once.
    pub fn is_whole(&self, place: &Place) -> bool {
        place.is_whole(self.bytes(place.block))
    }

    /// Whether a block is captured and no step writes it; a write from outside the run shows in its
    /// version.
    pub fn is_fixed(&self, block: u32) -> bool {
        self.role(block) == Role::Captured
            && self.writers(block).is_empty()
            && !self.queue.blocks()[block as usize].is_exposed()
    }

    /// A new tensor in a temporary block of its own.
    pub fn temporary(&mut self, meta: &Arc<Meta>) -> Place {
        let place = self.queue.place(&View::of(&self.device, meta));
        self.roles.push(Role::Temporary);
        self.uses.push(Uses::default());
        place
    }

    /// An operation that reads these places and writes places that it infers.
    ///
    /// # Errors
    /// The errors of the family's checks.
    pub fn infer(&self, kind: Kind, inputs: &[Place]) -> Result<Arc<Call>> {
        let metas: SmallVec<[Arc<Meta>; 8]> = inputs.iter().map(|at| at.meta.clone()).collect();
        Ok(Arc::new(Call::new(&kind, &metas[..])?))
    }
}

impl Draft {
    /// Puts a step in place of another, or in the gap that one has left.
    pub fn replace(&mut self, n: usize, step: Op) {
        self.remove(n);
        self.steps[n] = Some(step);
        self.note(n);
    }

    /// Removes a step.
    pub fn remove(&mut self, n: usize) {
        self.forget(n);
        self.steps[n] = None;
    }

    /// Inserts a step right before another one, or a gap; returns its number.
    pub fn insert_before(&mut self, n: usize, step: Op) -> usize {
        self.insert(n, false, step)
    }

    /// Inserts a step right after another one, or a gap; returns its number.
    pub fn insert_after(&mut self, n: usize, step: Op) -> usize {
        self.insert(n, true, step)
    }

    fn insert(&mut self, n: usize, is_after: bool, step: Op) -> usize {
        let new = loop {
            match self.order.add(self.order.gap(n, is_after)) {
                Some(new) => break new,
                None => self.make_room(n),
            }
        };
        self.steps.push(Some(step));
        self.note(new);
        new
    }

    /// Spreads the labels around a number, by which the uses of blocks are sorted.
    fn make_room(&mut self, n: usize) {
        let (crowd, labels) = self.order.crowd(n);
        crowd.iter().for_each(|&n| self.forget(n as usize));
        self.order.spread(&crowd, labels);
        crowd.iter().for_each(|&n| self.note(n as usize));
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
            let mut step = self.steps[reader].clone().expect("it reads");
            point(&mut step.inputs, from, to);
            self.replace(reader, step);
        }
    }

    /// Makes step `n` write a new block in place of `block`, which it overwrites completely, and
    /// points all later steps at the new one.
    pub fn rename(&mut self, block: u32, n: usize) {
        let uses = &self.uses[block as usize];
        let later =
            uses.readers.iter().chain(uses.writers.iter()).filter(|&user| self.is_before(n, user));
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

    /// Adds a step to the uses of its blocks and to what it is besides.
    fn note(&mut self, n: usize) {
        let Some(step) = &self.steps[n] else { return };
        let member = self.order.member(n);
        if step.call.effects.host {
            self.hosts.insert(member);
        }
        if step.may_fail() {
            self.faults.insert(member);
        }
        for place in &step.inputs {
            self.uses[place.block as usize].readers.insert(member);
        }
        for place in &step.outputs {
            self.uses[place.block as usize].writers.insert(member);
        }
    }

    /// Takes a step out of these again.
    fn forget(&mut self, n: usize) {
        let Some(step) = &self.steps[n] else { return };
        let member = self.order.member(n);
        self.hosts.remove(member);
        self.faults.remove(member);
        for place in step.places() {
            let uses = &mut self.uses[place.block as usize];
            uses.readers.remove(member);
            uses.writers.remove(member);
        }
    }
}

/// Redirects places from one block to another.
fn point(places: &mut [Place], from: u32, to: u32) {
    places.iter_mut().filter(|place| place.block == from).for_each(|place| place.block = to);
}

#[cfg(test)]
mod tests;
