//! Independent checks of a graph's analysis: they share no code with hazards, lifetimes, in-place
//! sharing and planning, only the data that these produce.

mod edges;
mod node;
mod ranges;
mod replay;

use std::ops::Range;

pub(super) use edges::{edges, schedule};
pub(super) use replay::{kept, replay};

use crate::graph::{Graph, Place, Role};

/// A mistake in an analysis.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// An edge to a node from itself or from a later one.
    #[error("node {node} is to wait for node {earlier}, which comes no earlier")]
    Backwards { node: usize, earlier: usize },
    /// Two nodes that no path of edges connects although one writes what the other touches.
    #[error("nodes {earlier} and {later} both touch {resource}, and no edges order them")]
    Unordered { earlier: usize, later: usize, resource: Resource },
    /// A read that finds something other than it did in the recording.
    #[error(
        "{reader} reads bytes {bytes:?} of block {block} as {want:?} left them, but finds {found:?}"
    )]
    Stale { reader: Reader, block: u32, bytes: Range<usize>, want: Writer, found: Option<Tag> },
    /// A read of a temporary block that nothing has written.
    #[error("node {node} reads bytes {bytes:?} of block {block}, which nothing has written")]
    Unwritten { node: usize, block: u32, bytes: Range<usize> },
    /// An operand that a node writes and that overlaps another operand of the node.
    #[error("{one} of node {node} lies in the memory of its {other} (blocks {blocks:?})")]
    Overlap { node: usize, one: Operand, other: Operand, blocks: [Option<u32>; 2] },
    /// An operand that reaches beyond its block or the arena.
    #[error("{operand} of node {node} (block {block:?}) ends at byte {end} of {limit}")]
    Beyond { node: usize, operand: Operand, block: Option<u32>, end: usize, limit: usize },
    /// An operand without an offset, or with one that is not aligned.
    #[error("{operand} of node {node} (block {block:?}) has no place in the arena, or a wrong one")]
    Misplaced { node: usize, operand: Operand, block: Option<u32> },
    /// More or fewer operands than the kernel takes.
    #[error("node {node} has {got} inputs or outputs, and its kernel takes {want}")]
    Operands { node: usize, got: usize, want: usize },
    /// An operand whose dtype, shape or strides differ from those that the kernel was made for.
    #[error("{operand} of node {node} is not what its kernel was made for")]
    Meta { node: usize, operand: Operand },
    /// A block that is computed once for all runs, but must not be.
    #[error("block {block} is computed once for all runs, but {what}")]
    Kept { block: u32, what: &'static str },
    /// An operation within a node whose operands are missing or of the wrong kind.
    #[error("link {link} of node {node} does not find what it works on")]
    Link { node: usize, link: usize },
    /// A schedule that does not contain every node exactly once.
    #[error("the schedule holds node {node} {times} times")]
    Schedule { node: usize, times: usize },
    /// A node that several threads share although it must run alone, or that is shared twice.
    #[error("node {node} is to run beside others, though it must run alone or is elsewhere, too")]
    Beside { node: usize },
}

/// What can cause a dependency between nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    Block(u32),
    /// Where blocks take turns.
    Arena,
    /// User code.
    Host,
}

/// An operand of a node, by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    Input(usize),
    Output(usize),
    Scratch,
}

/// A reader of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    Node(usize),
    After,
}

/// A writer of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    Before,
    Node(u32),
}

/// What a range of memory holds: bytes of a block, as left by a writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// None for scratch.
    pub block: Option<u32>,
    pub writer: Writer,
}

macro_rules! display {
    ($type:ty, $($pattern:pat => ($($text:tt)*)),*) => {
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self { $($pattern => write!(f, $($text)*)),* }
            }
        }
    };
}
display!(
    Resource,
    Self::Block(b) => ("block {b}"), Self::Arena => ("the arena"), Self::Host => ("the host")
);
display!(
    Operand,
    Self::Input(i) => ("input {i}"), Self::Output(o) => ("output {o}"), Self::Scratch => ("scratch")
);
display!(Reader, Self::Node(n) => ("node {n}"), Self::After => ("what follows the run"));

impl Fault {
    /// The node that the fault is attributed to, if any.
    pub fn node(&self) -> Option<usize> {
        match self {
            Fault::Unordered { later: node, .. }
            | Fault::Stale { reader: Reader::Node(node), .. }
            | Fault::Backwards { node, .. }
            | Fault::Unwritten { node, .. }
            | Fault::Overlap { node, .. }
            | Fault::Beyond { node, .. }
            | Fault::Misplaced { node, .. }
            | Fault::Operands { node, .. }
            | Fault::Link { node, .. }
            | Fault::Meta { node, .. }
            | Fault::Schedule { node, .. }
            | Fault::Beside { node } => Some(*node),
            Fault::Stale { reader: Reader::After, .. } | Fault::Kept { .. } => None,
        }
    }
}

/// Runs all checks on a graph in recorded order.
pub(super) fn verify(graph: &Graph) -> Result<(), Fault> {
    let order: Vec<u32> = (0..graph.ops().len() as u32).collect();
    edges(graph, graph.edges())?;
    (0..graph.ops().len()).try_for_each(|n| node::links(graph, n))?;
    replay(graph, &graph.layout, &order)?;
    graph.schedule().map_or(Ok(()), |found| schedule(graph, &graph.layout, found))
}

#[cfg(test)]
pub(super) mod tests;
