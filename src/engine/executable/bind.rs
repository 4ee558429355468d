//! Binding a graph's blocks outside the arena: arguments, parameters, results.

use std::ops::Deref;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::block::{Block, Latest};
use crate::device::Account;
use crate::engine::executable::Constants;
use crate::engine::executable::{Executable, State};
use crate::engine::recording::Recording;
use crate::error::{Error, Result};
use crate::graph::{Bound, Place, Role};
use crate::ops::View;

/// A block that a run produces outside the arena.
pub(in crate::engine) struct Slot {
    pub block: u32,
    pub bytes: usize,
    pub latest: Arc<Latest>,
}

impl Slot {
    /// The results of a recording outside the arena; tensors that still hold such a block follow
    /// that of the latest run.
    pub fn all(recording: &Recording) -> Vec<Slot> {
        let slot = |(n, block): (usize, &Arc<Block>)| {
            let latest = Arc::<Latest>::default();
            let is_kept = recording.kept.contains(&(n as u32));
            let latest = if is_kept { block.follow(&latest).clone() } else { latest };
            Slot { block: n as u32, bytes: block.bytes(), latest }
        };
        let blocks = recording.queue.blocks().iter().enumerate();
        blocks.filter(|(n, _)| recording.roles[*n] == Role::Slot).map(slot).collect()
    }
}

/// Blocks that existed before a recording, with their numbers: those of one that runs.
pub(in crate::engine) struct Captured(Vec<(u32, Arc<Block>)>);

impl Captured {
    pub fn of(recording: &Recording) -> Self {
        let blocks = recording.captured();
        blocks.iter().for_each(|(_, block)| block.set_captured(true));
        Captured(blocks)
    }
}

impl Deref for Captured {
    type Target = [(u32, Arc<Block>)];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Drop for Captured {
    fn drop(&mut self) {
        self.iter().for_each(|(_, block)| block.set_captured(false));
    }
}

impl Executable {
    /// Binds blocks that may have changed since the last run.
    pub(in crate::engine) fn bind(&self, state: &mut State, arguments: &[View]) -> Result<()> {
        let height = self.arena_bytes();
        self.captured.iter().try_for_each(|(_, block)| block.check_whole())?;
        if state.is_ready {
            // The arena may have been trimmed.
            self.arena.back(height).map_err(|error| self.explain(error))?;
        } else {
            for (number, block) in self.captured.iter() {
                state.bound.bind(*number, block.to_touch()?.as_ptr());
            }
            if let Some((constants, memo)) = self.constants.as_ref().zip(state.memo.as_mut()) {
                constants.bind(memo, &mut state.bound, &self.captured)?;
            }
            self.arena.enter(height).map_err(|error| self.explain(error))?;
            state.is_ready = true;
        }
        for (place, view) in self.arguments.iter().zip(arguments) {
            let moved = (view.offset as isize - place.offset as isize)
                .wrapping_mul(place.meta.dtype.size() as isize);
            let start = view.block.to_touch()?.as_ptr();
            state.bound.bind(place.block, start.wrapping_offset(moved));
        }
        Ok(())
    }

    /// Adds the tensors that the arena would hold at its peak to an out-of-memory error.
    fn explain(&self, mut error: Error) -> Error {
        if let Error::OutOfMemory { usage, .. } = &mut error {
            **usage = self.graph.usage(self.origins(), std::mem::take(&mut usage.largest));
        }
        error
    }

    /// Binds memory for the run's results outside the arena, reusing that of the last run if nobody
    /// else can see it.
    pub(in crate::engine) fn bind_slots(&self, bound: &mut Bound) -> Result<Vec<Arc<Block>>> {
        self.bind_slots_to(bound, |slot| slot.latest.reusable())
    }

    /// The same, with memory that no earlier run used.
    pub(in crate::engine) fn bind_fresh_slots(&self, bound: &mut Bound) -> Result<Vec<Arc<Block>>> {
        self.bind_slots_to(bound, |_| None)
    }

    fn bind_slots_to(
        &self,
        bound: &mut Bound,
        used: impl Fn(&Slot) -> Option<Arc<Block>>,
    ) -> Result<Vec<Arc<Block>>> {
        let mut blocks = Vec::with_capacity(self.slots.len());
        for slot in &self.slots {
            let block = used(slot).unwrap_or_else(|| Block::new(&self.device, slot.bytes));
            bound.bind(slot.block, block.to_overwrite()?.as_ptr());
            // Raises the version: another graph may cache what it computes from the block.
            block.touch();
            blocks.push(block);
        }
        Ok(blocks)
    }

    pub(in crate::engine) fn result(&self, place: &Place, arguments: &[View]) -> View {
        let mut offset = place.offset;
        let block = match self.graph.roles()[place.block as usize] {
            Role::Argument => {
                let same = |recorded: &&Place| recorded.block == place.block;
                let which = self.arguments.iter().position(|p| same(&p)).expect("an argument");
                offset = offset + arguments[which].offset - self.arguments[which].offset;
                arguments[which].block.clone()
            }
            Role::Captured => self.captured_block(place.block),
            Role::Slot | Role::Temporary => {
                let slot = self.slots.iter().find(|slot| slot.block == place.block);
                slot.and_then(|slot| slot.latest.get()).expect("results lie in slots")
            }
        };
        View { block, meta: place.meta.clone(), offset }
    }

    fn captured_block(&self, number: u32) -> Arc<Block> {
        let found = self.captured.iter().find(|(n, _)| *n == number);
        found.expect("captured blocks are listed").1.clone()
    }

    /// Redirects the tensors still held from an equal recording to the results of this graph's
    /// runs.
    pub fn adopt(&self, recording: &Recording) {
        for slot in &self.slots {
            if recording.kept.contains(&slot.block) {
                recording.queue.blocks()[slot.block as usize].follow(&slot.latest);
            }
        }
    }

    /// Bytes by account that a run needs, whether already allocated or not.
    pub fn memory(&self) -> Vec<(Account, usize)> {
        let mut accounts = Account::ALL.map(|account| (account, 0));
        let mut add = |account: Account, bytes| accounts[account as usize].1 += bytes;
        self.captured.iter().for_each(|(_, block)| add(block.account(), block.bytes()));
        self.slots.iter().for_each(|slot| add(Account::Results, slot.bytes));
        add(Account::Arena, self.arena_bytes());
        add(Account::Constants, self.constants.as_ref().map_or(0, Constants::bytes));
        let given: FxHashSet<u32> = self.arguments.iter().map(|place| place.block).collect();
        given.iter().for_each(|n| add(Account::Staging, self.graph.block_bytes(*n)));
        accounts.to_vec()
    }

    /// How often a tensor object was redirected from a block that the graph captured.
    pub fn departures(&self) -> u32 {
        self.captured.iter().map(|(_, block)| block.departures()).fold(0, u32::wrapping_add)
    }

    /// The identities of captured blocks, by [`Arc::as_ptr`], with their numbers.
    pub fn captured_ids(&self) -> Vec<(usize, u32)> {
        self.captured.iter().map(|(n, block)| (Arc::as_ptr(block).addr(), *n)).collect()
    }

    /// The numbers of the arguments' blocks.
    pub fn argument_blocks(&self) -> Vec<u32> {
        self.arguments.iter().map(|place| place.block).collect()
    }

    /// The numbers of the results' blocks.
    pub fn result_blocks(&self) -> Vec<u32> {
        self.results.iter().map(|place| place.block).collect()
    }

    /// The existing blocks (captured or arguments) that the run writes, with their numbers.
    pub(in crate::engine) fn updated(&self, arguments: &[View]) -> Vec<(u32, Arc<Block>)> {
        let given = self.arguments.iter().zip(arguments).map(|(p, v)| (p.block, &v.block));
        let known = self.captured.iter().map(|(n, block)| (*n, block));
        let written = known.chain(given).filter(|(n, _)| self.graph.is_written(*n));
        written.map(|(n, block)| (n, block.clone())).collect()
    }
}
