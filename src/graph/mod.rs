//! What is done with many operations: a queue of them, its analysis, its plan, its replay.
//! Nothing here knows a particular operation; blocks are known by number.

pub mod access;
pub mod budget;
pub mod cost;
pub mod csr;
#[cfg(test)]
mod decisions;
pub mod draft;
pub mod export;
pub mod hazard;
mod layout;
pub mod live;
pub mod liveness;
pub mod order;
pub mod peak;
pub mod plan;
pub mod queue;
pub mod remat;
pub mod run;
mod schedule;
pub mod share;
#[cfg(test)]
pub(crate) mod testing;
pub mod verify;

use std::ops::Range;

use crate::error::{Error, Result};
pub use csr::{Csr, Edges};
use layout::{Layout, OUTSIDE};
pub use liveness::Lifetime;
pub use queue::{Node, Place, Queue};
pub use run::{Bound, Stopped};
pub use schedule::{Parallel, Schedule};
use share::Blocks;

/// What a block is to a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Handed in, another one each run.
    Argument,
    /// It was there before and is used by the recording: a parameter, a state, a constant.
    Captured,
    /// Made in the recording, and still held by somebody or returned; lies outside of the arena.
    Slot,
    /// Made in the recording, and needed by nobody afterwards; lies in the arena.
    Temporary,
}

/// Operations in their order, analysed and planned. It holds no memory.
#[derive(Debug)]
pub struct Graph {
    nodes: Vec<Node>,
    places: Vec<Place>,
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
    /// Analyses and plans a queue; `roles` are those of its blocks. Lets go of all blocks.
    ///
    /// # Errors
    /// [`Error::Graph`] where there is not one role a block; what [`Graph::verify`] says.
    pub fn new(queue: Queue, roles: Vec<Role>) -> Result<Graph> {
        Graph::made(queue, roles, None)
    }

    /// The same for replay by several threads, for which it may need more memory.
    ///
    /// # Errors
    /// As [`Graph::new`].
    pub fn parallel(queue: Queue, roles: Vec<Role>, parallel: Parallel) -> Result<Graph> {
        Graph::made(queue, roles, Some(parallel).filter(|parallel| parallel.workers > 1))
    }

    fn made(queue: Queue, roles: Vec<Role>, parallel: Option<Parallel>) -> Result<Graph> {
        let (nodes, places, bytes) = queue.into_parts();
        let message = || format!("got {} roles for {} blocks", roles.len(), bytes.len());
        crate::ensure!(
            roles.len() == bytes.len(),
            Error::Graph { op: "graph".into(), message: message() }
        );
        let graph = Graph::analyse(nodes, places, roles, bytes, parallel);
        graph.verify()?;
        Ok(graph)
    }

    fn analyse(
        nodes: Vec<Node>,
        places: Vec<Place>,
        roles: Vec<Role>,
        bytes: Vec<usize>,
        parallel: Option<Parallel>,
    ) -> Graph {
        let accesses = access::accesses(&nodes, &places, bytes.len());
        let hazard::Hazards { edges, cycles } = hazard::hazards(&accesses, bytes.len() + 1);
        let written = access::written(&accesses, bytes.len() + 1);
        let lifetimes = liveness::lifetimes(&nodes, &places, bytes.len());
        let segments = parallel.map_or(Vec::new(), |p| schedule::segments(&nodes, &edges, p));
        let blocks = Blocks {
            nodes: &nodes,
            places: &places,
            roles: &roles,
            bytes: &bytes,
            lifetimes: &lifetimes,
        };
        let most_bytes = parallel.map_or(usize::MAX, |parallel| parallel.most_bytes);
        let layout = Layout::new(&blocks, &segments, most_bytes);
        let of = |p: Parallel| Schedule::new(&nodes, &places, &layout, segments, p.workers);
        let schedule = parallel.map(of);
        Graph { nodes, places, roles, bytes, lifetimes, written, edges, cycles, layout, schedule }
    }

    /// Checks the edges and the plan, by code that shares nothing with what made them.
    ///
    /// # Errors
    /// [`Error::Internal`], which names a node and its blocks: a bug.
    pub fn verify(&self) -> Result<()> {
        verify::verify(self).map_err(|fault| self.internal(&fault))
    }

    /// Checks that what runs of this graph read of `kept` blocks is what another graph makes of
    /// memory that no run changes. Blocks have the same numbers in both.
    ///
    /// # Errors
    /// As [`Graph::verify`].
    pub fn verify_kept(&self, constants: &Graph, kept: &[u32]) -> Result<()> {
        verify::kept(self, constants, kept).map_err(|fault| self.internal(&fault))
    }

    fn internal(&self, fault: &verify::Fault) -> Error {
        let op = |node: usize| self.nodes[node].op.name();
        Error::Internal { op: fault.node().map_or("graph", op).into(), message: fault.to_string() }
    }
}

impl Graph {
    /// The operations, in recorded order.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// What a node reads.
    pub fn inputs(&self, node: &Node) -> &[Place] {
        node.inputs(&self.places)
    }

    /// What a node writes; an output that is state is the very place of its input.
    pub fn outputs(&self, node: &Node) -> &[Place] {
        node.outputs(&self.places)
    }

    /// What each block is, by number.
    pub fn roles(&self) -> &[Role] {
        &self.roles
    }

    /// The size of a block in bytes.
    pub fn block_bytes(&self, block: u32) -> usize {
        self.bytes[block as usize]
    }

    /// The first and the last node that name a block.
    pub fn lifetime(&self, block: u32) -> Option<Lifetime> {
        Some(self.lifetimes[block as usize]).filter(|life| !life.is_never())
    }

    /// Bytes of the arena.
    pub fn arena_bytes(&self) -> usize {
        self.layout.height
    }

    /// What no plan for this order of the nodes can do without: [`Graph::peak_bytes`].
    pub fn lower_bound_bytes(&self) -> usize {
        self.layout.bound
    }

    /// The most bytes of temporary blocks and scratch that live at once, each rounded up to 64,
    /// those that share memory in place counted once.
    pub fn peak_bytes(&self) -> usize {
        self.layout.bound
    }

    /// Where a temporary block lies in the arena.
    pub fn offset(&self, block: u32) -> Option<usize> {
        Some(self.layout.offsets[block as usize]).filter(|&offset| offset != OUTSIDE)
    }

    /// Where the work space of a node lies in the arena, if it needs some.
    pub fn scratch_offset(&self, node: usize) -> Option<usize> {
        self.layout.scratch_offset(node as u32)
    }

    /// Whether some node writes the block.
    pub fn is_written(&self, block: u32) -> bool {
        self.written[block as usize]
    }

    /// The blocks of which bytes are read first and written later, such as parameters: through
    /// them a run depends on the one before.
    pub fn cycles(&self) -> &[u32] {
        &self.cycles
    }

    /// The nodes that must run before each node.
    pub fn edges(&self) -> &Edges {
        &self.edges
    }

    /// The parts of the graph of which several threads may run the nodes.
    pub fn segments(&self) -> &[Range<u32>] {
        self.schedule.as_ref().map_or(&[], |schedule| &schedule.segments)
    }

    /// What several threads may run at the same time, if the graph was made for them.
    pub fn schedule(&self) -> Option<&Schedule> {
        self.schedule.as_ref()
    }
}
