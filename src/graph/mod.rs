//! Graphs of operations: queueing, analysis, memory planning and replay. Nothing here depends on a
//! particular operation; blocks are identified by number.

pub(crate) mod analysis;
pub(crate) mod ir;
pub(crate) mod memory;
pub(crate) mod replay;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod verify;

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::kernels::Prepared;
pub use crate::packing::Lifetime;
pub use analysis::csr::{Csr, Edges};
pub use analysis::timeline::Timeline;
pub(crate) use analysis::{cost, hazard};
pub use ir::checksum::Checksum;
pub use ir::origin::{Origin, Phase};
pub use ir::queue::{Kernels, Op, Place, Queue};
pub(crate) use ir::saved::refusal;
#[cfg(test)]
pub(crate) use ir::saved::reseal;
pub use ir::{draft, export};
use memory::layout::{Layout, OUTSIDE};
pub use memory::{budget, order, recompute};
pub use replay::schedule::{self, Parallel, Schedule};
pub use replay::{Bound, Stopped};

/// The part that a block plays in a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Passed in, a different one for each run.
    Argument,
    /// Existed before the recording, which uses it: a parameter, a state or a constant.
    Captured,
    /// Created by the recording, and returned or still held afterwards; kept outside the arena.
    Slot,
    /// Created by the recording and not needed afterwards; placed in the arena.
    Temporary,
}

impl Role {
    /// Whether the block exists before each run, so that what a run writes there lasts, whatever
    /// becomes of the run.
    pub fn lasts(self) -> bool {
        matches!(self, Role::Argument | Role::Captured)
    }
}

/// Operations in order, with their analysis and memory plan. It owns no tensor memory.
#[derive(Debug)]
pub struct Graph {
    ops: Vec<Op>,
    kernels: Vec<Arc<Prepared>>,
    roles: Vec<Role>,
    bytes: Vec<usize>,
    lifetimes: Vec<Lifetime>,
    written: Vec<bool>,
    edges: Edges,
    cycles: Vec<u32>,
    layout: Layout,
    schedule: Option<Schedule>,
}

impl Graph {
    /// Analyses and plans a queue; `roles` has one entry per block. Releases all blocks.
    ///
    /// # Errors
    /// [`Error::Graph`] if there is not exactly one role per block; otherwise as [`Graph::verify`].
    pub fn new(queue: Queue, roles: Vec<Role>, kernels: &Kernels) -> Result<Graph> {
        Graph::planned(queue, roles, kernels, None)
    }

    /// The same for replay by several threads, if it is `parallel`, which may need a larger arena.
    ///
    /// # Errors
    /// As [`Graph::new`].
    pub fn planned(
        queue: Queue,
        roles: Vec<Role>,
        kernels: &Kernels,
        parallel: Option<Parallel>,
    ) -> Result<Graph> {
        let parallel = parallel.filter(|parallel| parallel.workers > 1);
        let blocks = queue.blocks().len();
        let message = || format!("got {} roles for {blocks} blocks", roles.len());
        crate::ensure!(roles.len() == blocks, Error::graph("graph", message()));
        let line = Timeline::new(&queue, &roles, kernels);
        let (ops, bytes) = queue.into_parts();
        let kernels: Vec<_> = ops.iter().map(|op| kernels.get(op).clone()).collect();
        let accesses = hazard::accesses(&ops, blocks);
        let hazard::Hazards { edges, cycles } = hazard::hazards(&accesses, blocks + 1);
        let written = hazard::written(&accesses, blocks + 1);
        let segments = parallel.map_or(Vec::new(), |p| schedule::segments(&kernels, &edges, p));
        let most_bytes = parallel.map_or(usize::MAX, |parallel| parallel.most_bytes);
        let layout = Layout::new(&line, &roles, &segments, most_bytes);
        let of = |p: Parallel| Schedule::new(&ops, &kernels, &layout, segments, p);
        let (schedule, lifetimes) = (parallel.map(of), line.lives);
        let graph = Graph {
            ops,
            kernels,
            roles,
            bytes,
            lifetimes,
            written,
            edges,
            cycles,
            layout,
            schedule,
        };
        graph.verify()?;
        Ok(graph)
    }

    /// Checks the edges and the plan with code independent of the code that made them.
    ///
    /// # Errors
    /// [`Error::Internal`], naming a node and its blocks; it indicates a bug in the engine.
    pub fn verify(&self) -> Result<()> {
        verify::verify(self).map_err(|fault| self.internal(&fault))
    }

    /// Checks that what this graph reads from the `kept` blocks is what the `constants` graph
    /// computes from memory that no run changes. Blocks have the same numbers in both graphs.
    ///
    /// # Errors
    /// As [`Graph::verify`].
    pub fn verify_kept(&self, constants: &Graph, kept: &[u32]) -> Result<()> {
        verify::kept(self, constants, kept).map_err(|fault| self.internal(&fault))
    }

    fn internal(&self, fault: &verify::Fault) -> Error {
        let op = |node: usize| self.ops[node].call.name();
        Error::Internal { op: fault.node().map_or("graph", op).into(), message: fault.to_string() }
    }
}

impl Graph {
    /// The operations, in recorded order.
    pub fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// The kernels of the operations.
    pub fn kernels(&self) -> &[Arc<Prepared>] {
        &self.kernels
    }

    /// The role of each block, by number.
    pub fn roles(&self) -> &[Role] {
        &self.roles
    }

    /// The size of a block in bytes.
    pub fn block_bytes(&self, block: u32) -> usize {
        self.bytes[block as usize]
    }

    /// The first and last nodes that use a block; None if no node does.
    pub fn lifetime(&self, block: u32) -> Option<Lifetime> {
        Some(self.lifetimes[block as usize]).filter(|life| !life.is_never())
    }

    /// Bytes of the arena.
    pub fn arena_bytes(&self) -> usize {
        self.layout.height
    }

    /// A lower bound on the arena of any plan for this order of nodes, another name of
    /// [`Graph::peak_bytes`].
    pub fn lower_bound_bytes(&self) -> usize {
        self.peak_bytes()
    }

    /// The most bytes of temporary blocks and scratch that are live at once, each rounded up to 64;
    /// blocks that share memory in place count once.
    pub fn peak_bytes(&self) -> usize {
        self.layout.bound
    }

    /// The offset of a temporary block in the arena; None for a block outside it.
    pub fn offset(&self, block: u32) -> Option<usize> {
        Some(self.layout.offsets[block as usize]).filter(|&offset| offset != OUTSIDE)
    }

    /// The offset of a node's scratch in the arena, if it needs any.
    pub fn scratch_offset(&self, node: usize) -> Option<usize> {
        self.layout.scratch_offset(node as u32)
    }

    /// Whether any node writes the block.
    pub fn is_written(&self, block: u32) -> bool {
        self.written[block as usize]
    }

    /// Whether a node can fail because of its inputs' values, all of which are arguments, so that
    /// they can be checked before a run.
    pub fn is_checked_before(&self, n: usize) -> bool {
        let is_argument = |block: u32| self.roles[block as usize] == Role::Argument;
        self.ops[n].is_checked_before(|block| is_argument(block) && !self.is_written(block))
    }

    /// Blocks with bytes that are read before they are written, such as parameters: through them
    /// each run depends on the one before.
    pub fn cycles(&self) -> &[u32] {
        &self.cycles
    }

    /// The data dependencies: for each node, the nodes that must run before it.
    pub fn edges(&self) -> &Edges {
        &self.edges
    }

    /// The ranges of nodes that several threads may share.
    pub fn segments(&self) -> &[Range<u32>] {
        self.schedule.as_ref().map_or(&[], |schedule| &schedule.segments)
    }

    /// What several threads may run concurrently, if the graph was made for parallel replay.
    pub fn schedule(&self) -> Option<&Schedule> {
        self.schedule.as_ref()
    }
}
