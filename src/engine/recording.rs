//! What a thread recorded: operations in order, and what is known about the blocks they use.

pub mod append;
mod difference;
pub(super) mod initial;
pub mod recorder;
mod saved;

use std::sync::Arc;

use smallvec::SmallVec;

use crate::block::Block;
use crate::device::Device;
use crate::graph::{Op, Origin, Place, Queue, Role};
use crate::ops::{Call, View};
pub use saved::SavedPlace;

/// Where a block of a recording comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Source {
    /// It was passed as an argument.
    Argument,
    /// It existed before the recording.
    Captured,
    /// It holds a host array that was read during the recording; this is the array's hash.
    Constant(u64),
    /// It was created during the recording.
    Made {
        /// Whether an operation has written it, or zeros have been recorded for it.
        written: bool,
    },
}

/// See the module's documentation.
pub struct Recording {
    pub(super) device: Arc<Device>,
    pub(super) queue: Queue,
    /// By block number.
    pub(super) sources: Vec<Source>,
    pub(super) arguments: Vec<Place>,
    pub(super) results: Vec<Place>,
    /// How much was drawn from each generator since it was last advanced.
    draws: Draws,
    /// The generators that recorded operations drew from; `state_is_late` is whether state was
    /// drawn from one of them afterwards.
    drawn_from: SmallVec<[View; 1]>,
    state_is_late: bool,
    /// Whether a value was asked for, which a recording does not have.
    was_read: bool,
    origins: Vec<Origin>,
    pub(super) roles: Vec<Role>,
    /// The blocks created during the recording that were still held elsewhere when it was sealed.
    pub(super) kept: Vec<u32>,
}

impl Recording {
    /// An empty recording of a function of these arguments.
    pub fn new(device: &Arc<Device>, arguments: &[View]) -> Self {
        let mut recording = Recording {
            device: device.clone(),
            queue: Queue::default(),
            sources: Vec::new(),
            arguments: Vec::new(),
            results: Vec::new(),
            draws: Draws::new(),
            drawn_from: SmallVec::new(),
            state_is_late: false,
            was_read: false,
            origins: vec![Origin::unknown()],
            roles: Vec::new(),
            kept: Vec::new(),
        };
        for argument in arguments {
            let place = recording.queue.place(argument);
            recording.sources.resize(recording.queue.blocks().len(), Source::Argument);
            recording.arguments.push(place);
        }
        recording
    }

    /// Where its operations come from, by number.
    pub fn origins(&self) -> &[Origin] {
        &self.origins
    }

    /// Where an operation comes from.
    pub fn origin(&self, op: &Op) -> &Origin {
        &self.origins[op.origin as usize]
    }

    pub(super) fn add_origin(&mut self, origin: Origin) {
        self.origins.push(origin);
    }

    /// Registers a block created during the recording.
    pub(super) fn make(&mut self, block: &Arc<Block>) {
        let number = self.queue.number(block) as usize;
        debug_assert_eq!(number, self.sources.len());
        self.sources.push(Source::Made { written: false });
    }

    /// Registers a block that holds a host array.
    pub(super) fn bake(&mut self, block: &Arc<Block>, hash: u64) {
        self.queue.number(block);
        self.sources.push(Source::Constant(hash));
    }

    /// Appends an operation; `outputs` are those that are not state.
    pub(super) fn push(&mut self, call: &Arc<Call>, from: &[View], to: &[View], origin: u32) {
        self.queue.push(call.clone(), from, to, origin);
        // A block that is neither an argument nor created here existed before.
        self.sources.resize(self.queue.blocks().len(), Source::Captured);
    }

    /// The blocks created during the recording that an operation reads, or writes in part, before
    /// anything was written to them: they must be zeroed first. They are then marked as written.
    pub(super) fn unwritten(&mut self, from: &[View], to: &[View]) -> Blocks {
        let mut found = Blocks::new();
        for view in from {
            self.write(view, false, &mut found);
        }
        for view in to {
            self.write(view, view.covers_block(), &mut found);
        }
        found
    }

    /// The blocks created during the recording that were never written and may still be read.
    pub(super) fn never_written(&mut self) -> Blocks {
        let blocks = self.queue.blocks().iter().zip(&mut self.sources);
        let unwritten = blocks.filter_map(|(block, source)| match source {
            Source::Made { written } if Arc::strong_count(block) > 1 => {
                (!std::mem::replace(written, true)).then(|| block.clone())
            }
            _ => None,
        });
        unwritten.collect()
    }

    fn write(&mut self, view: &View, whole: bool, found: &mut Blocks) {
        let Some(number) = self.queue.find(&view.block) else { return };
        if let Source::Made { written } = &mut self.sources[number as usize]
            && !std::mem::replace(written, true)
            && !whole
        {
            found.push(view.block.clone());
        }
    }

    /// The distance from a generator's state to the next draw.
    pub(super) fn drawn(&self, state: &View) -> u64 {
        self.draws.iter().find(|(s, _)| s.is_same(state)).map_or(0, |draw| draw.1)
    }

    /// Records that `count` blocks of numbers were drawn.
    pub(super) fn draw(&mut self, state: &View, count: u64) {
        if !self.has_drawn_from(state) {
            self.drawn_from.push(state.clone());
        }
        match self.draws.iter_mut().find(|(s, _)| s.is_same(state)) {
            Some(draw) => draw.1 += count,
            None => self.draws.push((state.clone(), count)),
        }
    }

    fn has_drawn_from(&self, generator: &View) -> bool {
        self.drawn_from.iter().any(|known| known.is_same(generator))
    }

    /// Records that state was drawn from a generator immediately.
    pub(super) fn draw_state(&mut self, generator: &View) {
        self.state_is_late |= self.has_drawn_from(generator);
    }

    /// Whether state was drawn from a generator after recorded operations, which draw only in a
    /// run: it then got other numbers than in eager execution.
    pub fn state_is_late(&self) -> bool {
        self.state_is_late
    }

    /// Notes that a value was asked for, and refused.
    pub(super) fn refuse_read(&mut self) {
        self.was_read = true;
    }

    /// Whether a value was asked for. A program that goes on after that error does something else
    /// than in eager execution.
    pub fn was_read(&self) -> bool {
        self.was_read
    }

    /// The generators that must be advanced before these tensors are read or written, except the
    /// one (input `generator`) that the operation only draws from.
    pub(super) fn moved(&mut self, views: &[View], generator: Option<usize>) -> Draws {
        let touches = |state: &View| {
            let drawn = |i: usize, view: &View| Some(i) == generator && view.is_same(state);
            views.iter().enumerate().any(|(i, v)| v.overlaps(state) && !drawn(i, v))
        };
        let (now, later) =
            self.draws.drain(..).partition(|(state, count)| *count > 0 && touches(state));
        self.draws = later;
        now
    }

    /// The generators that have not been advanced yet.
    pub(super) fn all_moved(&mut self) -> Draws {
        std::mem::take(&mut self.draws)
    }

    /// Sets the views that the recorded function returned.
    pub(super) fn answer(&mut self, results: &[View]) {
        self.results.clear();
        for view in results {
            let place = self.queue.place(view);
            self.sources.resize(self.queue.blocks().len(), Source::Captured);
            self.results.push(place);
        }
    }

    /// Decides the blocks' roles: blocks created here that are still held elsewhere, or were
    /// returned, are placed outside the arena.
    pub fn seal(&mut self) {
        let blocks = self.queue.blocks().iter().zip(&self.sources).enumerate();
        // A further reference means that the block is still visible elsewhere.
        let kept = blocks.filter(|(_, (block, source))| {
            matches!(source, Source::Made { .. }) && Arc::strong_count(block) > 1
        });
        self.kept = kept.map(|(n, _)| n as u32).collect();
        let mut is_seen = vec![false; self.sources.len()];
        let results = self.results.iter().map(|place| place.block);
        self.kept.iter().copied().chain(results).for_each(|n| is_seen[n as usize] = true);
        let role = |(n, source): (usize, &Source)| match source {
            Source::Argument => Role::Argument,
            Source::Captured | Source::Constant(_) => Role::Captured,
            Source::Made { .. } if is_seen[n] => Role::Slot,
            Source::Made { .. } => Role::Temporary,
        };
        self.roles = self.sources.iter().enumerate().map(role).collect();
    }

    /// The operations, and the roles of their blocks.
    pub(super) fn operations(&self) -> (Queue, Vec<Role>) {
        (self.queue.clone(), self.roles.clone())
    }

    /// The recording, reopened to be continued: tensors that follow a graph's results map to the
    /// recorded blocks.
    pub fn reopened(mut self) -> Self {
        for &number in &self.kept {
            if let Some(now) = self.queue.blocks()[number as usize].current() {
                self.queue.rename(now, number);
            }
        }
        self.results.clear();
        self
    }

    /// The blocks that existed before the recording, with their numbers.
    pub fn captured(&self) -> Vec<(u32, Arc<Block>)> {
        let blocks = self.queue.blocks().iter().zip(&self.sources).enumerate();
        let is_captured = |s: &Source| matches!(s, Source::Captured | Source::Constant(_));
        let captured = blocks.filter(|(_, (_, source))| is_captured(source));
        captured.map(|(n, (block, _))| (n as u32, block.clone())).collect()
    }

    /// Whether captured blocks may overlap, as memory of another library may. Dependency analysis
    /// does not account for that.
    pub fn has_aliases(&self) -> bool {
        let captured = self.captured();
        let mut lent = captured.iter().filter(|(_, block)| block.is_lent());
        lent.any(|(n, block)| captured.iter().any(|(k, other)| n != k && block.meets(other)))
    }

    /// The device of the recording.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }
}

/// A few blocks.
pub(super) type Blocks = SmallVec<[Arc<Block>; 2]>;

/// Generators' states, and how many blocks of numbers were drawn from them.
pub(super) type Draws = SmallVec<[(View, u64); 1]>;
