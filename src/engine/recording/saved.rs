//! Recordings that leave the process: their operations as bytes, and the places of tensors.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::device::Device;
use crate::engine::recording::{Recording, Source};
use crate::error::Result;
use crate::graph::{Op, Origin, Place, Queue, Role, refusal};
use crate::ops::{Meta, View};

/// The place of a tensor, as it is saved.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize, Debug)]
pub struct SavedPlace {
    /// The block's number.
    pub block: u32,
    /// The offset of the first element, in elements.
    pub offset: usize,
    /// The dtype, shape and strides.
    pub meta: Meta,
}

impl From<&Place> for SavedPlace {
    fn from(place: &Place) -> Self {
        SavedPlace { block: place.block, offset: place.offset, meta: (*place.meta).clone() }
    }
}

impl Recording {
    /// The operations of a sealed recording and the roles of its blocks, as [`Queue::to_bytes`].
    ///
    /// # Errors
    /// [`crate::Error::Graph`] if an operation runs user code or exchanges with other processes.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.queue.to_bytes(&self.roles)
    }

    /// A sealed recording that [`Recording::to_bytes`] wrote, with these arguments, results and
    /// origins. The blocks that existed before it are new ones, without memory.
    ///
    /// # Errors
    /// Those of [`Queue::from_bytes`]; [`crate::Error::Graph`] for what cannot have been recorded.
    pub fn from_bytes(
        device: &Arc<Device>,
        bytes: &[u8],
        arguments: &[SavedPlace],
        results: &[SavedPlace],
        origins: Vec<Origin>,
    ) -> Result<Recording> {
        let (queue, roles) = Queue::from_bytes(device, bytes)?;
        let mut made = Recording { queue, roles, origins, ..Recording::new(device, &[]) };
        made.sources = made.roles.iter().map(source).collect();
        made.arguments = made.located(arguments)?;
        made.results = made.located(results)?;
        made.check_arguments()?;
        made.check_results()?;
        made.check_operations()?;
        Ok(made)
    }

    /// The places of the arguments.
    pub fn arguments(&self) -> &[Place] {
        &self.arguments
    }

    /// The places of the results.
    pub fn results(&self) -> &[Place] {
        &self.results
    }

    /// The place of a tensor that existed before the recording, if an operation uses its block or
    /// it is a result.
    pub fn captured_place(&self, view: &View) -> Option<Place> {
        let block = self.queue.find(&view.block)?;
        let is_captured = self.roles.get(block as usize) == Some(&Role::Captured);
        is_captured.then(|| Place { block, offset: view.offset, meta: view.meta.clone() })
    }

    /// A tensor that existed before the recording, at a place that was read from a file.
    ///
    /// # Errors
    /// [`crate::Error::Graph`] for any other place.
    pub fn captured_view(&self, saved: &SavedPlace) -> Result<View> {
        let Place { block, offset, meta } = self.located_at(saved)?;
        let is_captured = self.roles[block as usize] == Role::Captured;
        crate::ensure!(is_captured, refusal("a state is none"));
        Ok(View { block: self.queue.blocks()[block as usize].clone(), meta, offset })
    }

    fn located(&self, saved: &[SavedPlace]) -> Result<Vec<Place>> {
        saved.iter().map(|place| self.located_at(place)).collect()
    }

    fn located_at(&self, saved: &SavedPlace) -> Result<Place> {
        let meta = Arc::new(saved.meta.clone());
        let place = self.queue.place_at(saved.block, saved.offset, &meta);
        place.ok_or_else(|| refusal("a tensor lies outside its block"))
    }

    /// Each argument is a block of its own, and there are no others.
    fn check_arguments(&self) -> Result<()> {
        let given = |role: &&Role| **role == Role::Argument;
        let mut blocks: Vec<u32> = self.arguments.iter().map(|place| place.block).collect();
        blocks.sort_unstable();
        blocks.dedup();
        let fits = blocks.len() == self.arguments.len()
            && blocks.len() == self.roles.iter().filter(given).count()
            && self.arguments.iter().all(|place| {
                self.roles[place.block as usize] == Role::Argument && self.covers(place)
            });
        crate::ensure!(fits, refusal("the arguments are not those of the operations"));
        Ok(())
    }

    /// Results outlive a run.
    fn check_results(&self) -> Result<()> {
        let lasts = |place: &Place| self.roles[place.block as usize] != Role::Temporary;
        crate::ensure!(self.results.iter().all(lasts), refusal("a result is only temporary"));
        Ok(())
    }

    /// Memory is written as a whole before anything reads it, and each operation has an origin.
    fn check_operations(&self) -> Result<()> {
        let is_given = |source: &Source| !matches!(source, Source::Made { .. });
        let mut written: Vec<bool> = self.sources.iter().map(is_given).collect();
        for op in self.queue.ops() {
            let has_origin = (op.origin as usize) < self.origins.len();
            crate::ensure!(has_origin, refusal("an operation has no origin"));
            self.check_order(op, &mut written)?;
        }
        let mut slots = self.roles.iter().zip(&written).filter(|(role, _)| **role == Role::Slot);
        let are_made = slots.all(|(_, written)| *written);
        crate::ensure!(are_made, refusal("no operation makes a result"));
        Ok(())
    }

    fn check_order(&self, op: &Op, written: &mut [bool]) -> Result<()> {
        let mut inputs = op.inputs.iter();
        let is_read = inputs.all(|place| written[place.block as usize]);
        crate::ensure!(is_read, refusal("an operation reads what none has written"));
        for place in &op.outputs {
            let is_whole = written[place.block as usize] || self.covers(place);
            crate::ensure!(is_whole, refusal("an operation leaves memory unwritten"));
            written[place.block as usize] = true;
        }
        Ok(())
    }

    /// Whether a tensor is all of its block.
    fn covers(&self, place: &Place) -> bool {
        place.is_whole(self.queue.blocks()[place.block as usize].bytes())
    }
}

fn source(role: &Role) -> Source {
    match role {
        Role::Argument => Source::Argument,
        Role::Captured => Source::Captured,
        Role::Slot | Role::Temporary => Source::Made { written: true },
    }
}
