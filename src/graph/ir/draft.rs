//! A queue that is being rewritten.

mod edit;
mod numbers;

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::device::{ALIGNMENT, Device};
use crate::error::Result;
use crate::graph::{Op, Place, Queue, Role};
use crate::kernels::{self, Target};
use crate::ops::{Call, Kind, Meta, View};
pub use numbers::Numbers;

/// The steps that use a block, in order.
#[derive(Default)]
struct Uses {
    writers: Numbers,
    readers: Numbers,
}

/// See the module's documentation. Recorded operations have even numbers and keep them; a removed
/// one leaves a gap, and a gap after each allows another step to be inserted.
pub struct Draft {
    device: Arc<Device>,
    queue: Queue,
    roles: Vec<Role>,
    steps: Vec<Option<Op>>,
    uses: Vec<Uses>,
    /// The steps that run user code, in order.
    hosts: Numbers,
}

impl Draft {
    /// A draft of a queue's operations; `roles` has one entry per block.
    pub fn new(device: &Arc<Device>, mut queue: Queue, roles: Vec<Role>) -> Draft {
        let steps: Vec<_> = queue.take_ops().into_iter().flat_map(|op| [Some(op), None]).collect();
        let uses = roles.iter().map(|_| Uses::default()).collect();
        let hosts = Numbers::default();
        let mut draft = Draft { device: device.clone(), queue, roles, steps, uses, hosts };
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

    /// The numbers of all steps and gaps.
    pub fn numbers(&self) -> Range<usize> {
        0..self.steps.len()
    }

    /// The steps with their numbers.
    pub fn steps(&self) -> impl Iterator<Item = (usize, &Op)> {
        self.steps.iter().enumerate().filter_map(|(n, step)| Some((n, step.as_ref()?)))
    }

    /// A step; None for a gap.
    pub fn step(&self, n: usize) -> Option<&Op> {
        self.steps[n].as_ref()
    }

    /// The size of a block in bytes.
    pub fn bytes(&self, block: u32) -> usize {
        self.queue.blocks()[block as usize].bytes()
    }

    /// The size of a block in bytes, rounded up as in the arena.
    pub fn size(&self, block: u32) -> usize {
        self.bytes(block).next_multiple_of(ALIGNMENT)
    }

    /// The number of blocks.
    pub fn blocks(&self) -> usize {
        self.roles.len()
    }

    /// The role of each block, by number.
    pub fn roles(&self) -> &[Role] {
        &self.roles
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
        let is_first = self.readers(place.block).first().is_none_or(|reader| reader > writer);
        (is_made && writes && is_first).then_some(writer)
    }

    /// Whether a place has the same contents after the first step as before the second: no step in
    /// between writes its block.
    pub fn holds(&self, place: &Place, first: usize, second: usize) -> bool {
        self.writers(place.block).within(first + 1..second).is_none()
    }

    /// The first step after step `n` that writes a block.
    pub fn written_after(&self, block: u32, n: usize) -> Option<usize> {
        self.writers(block).within(n + 1..usize::MAX)
    }

    /// Whether user code runs between two steps.
    pub fn has_host_between(&self, first: usize, second: usize) -> bool {
        self.hosts.within(first + 1..second).is_some()
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

#[cfg(test)]
mod tests;
