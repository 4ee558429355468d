//! Checks of what the analysis of a graph found, written apart from it: they share no code with
//! hazards, lifetimes, in-place sharing and planning, only the data that these made.

mod edges;
mod kept;
mod node;
mod ranges;
mod recorded;
mod region;
mod replay;
mod schedule;

use std::ops::Range;

pub(super) use edges::edges;
pub(super) use kept::kept;
pub(super) use replay::replay;
pub(super) use schedule::schedule;

use super::{Graph, Place, Role};

/// A mistake of an analysis.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// An edge to a node from itself or from a later one.
    #[error("node {node} is to wait for node {earlier}, which comes no earlier")]
    Backwards {
        /// The node.
        node: usize,
        /// The one that is to run before it.
        earlier: usize,
    },
    /// Two nodes that no path of edges connects, though one writes what the other touches.
    #[error("nodes {earlier} and {later} both touch {resource}, and no edges order them")]
    Unordered {
        /// The one recorded first.
        earlier: usize,
        /// The other one.
        later: usize,
        /// What both touch.
        resource: Resource,
    },
    /// A read of something else than what was there in the recording.
    #[error(
        "{reader} reads bytes {bytes:?} of block {block} as {want:?} left them, but finds {found:?}"
    )]
    Stale {
        /// Who reads.
        reader: Reader,
        /// The block that it names.
        block: u32,
        /// Bytes of the block.
        bytes: Range<usize>,
        /// Who wrote them in the recording.
        want: Writer,
        /// What is there instead, if anything.
        found: Option<Tag>,
    },
    /// A read of a temporary block that nobody has written.
    #[error("node {node} reads bytes {bytes:?} of block {block}, which nothing has written")]
    Unwritten {
        /// The node.
        node: usize,
        /// The block.
        block: u32,
        /// Bytes of the block.
        bytes: Range<usize>,
    },
    /// Something that a node writes lies where another operand of it lies.
    #[error("{one} of node {node} lies in the memory of its {other} (blocks {blocks:?})")]
    Overlap {
        /// The node.
        node: usize,
        /// What is written.
        one: Operand,
        /// What it overlaps.
        other: Operand,
        /// The blocks of the two; none for scratch.
        blocks: [Option<u32>; 2],
    },
    /// An operand that reaches beyond its block or the arena.
    #[error("{operand} of node {node} (block {block:?}) ends at byte {end} of {limit}")]
    Beyond {
        /// The node.
        node: usize,
        /// The operand.
        operand: Operand,
        /// Its block; none for scratch.
        block: Option<u32>,
        /// One past its last byte.
        end: usize,
        /// Bytes of the block or the arena.
        limit: usize,
    },
    /// An operand without a place, or at one that is not aligned.
    #[error("{operand} of node {node} (block {block:?}) has no place in the arena, or a wrong one")]
    Misplaced {
        /// The node.
        node: usize,
        /// The operand.
        operand: Operand,
        /// Its block; none for scratch.
        block: Option<u32>,
    },
    /// Operands that are more or fewer than the kernel takes.
    #[error("node {node} has {got} inputs or outputs, and its kernel takes {want}")]
    Operands {
        /// The node.
        node: usize,
        /// How many there are.
        got: usize,
        /// How many there have to be.
        want: usize,
    },
    /// An operand of another dtype, shape or strides than the kernel was made for.
    #[error("{operand} of node {node} is not what its kernel was made for")]
    Meta {
        /// The node.
        node: usize,
        /// The operand.
        operand: Operand,
    },
    /// A block that is computed once, and then read by run after run, but may not be.
    #[error("block {block} is computed once for all runs, but {what}")]
    Kept {
        /// The block.
        block: u32,
        /// What is wrong.
        what: &'static str,
    },
    /// An operation within a node that does not find what it works on, or makes something else.
    #[error("link {link} of node {node} does not find what it works on")]
    Link {
        /// The node.
        node: usize,
        /// The operation's number in it.
        link: usize,
    },
    /// A schedule that does not hold every node once.
    #[error("the schedule holds node {node} {times} times")]
    Schedule {
        /// The node.
        node: usize,
        /// How often it is there.
        times: usize,
    },
    /// A node among those that several threads share that must run alone, or twice.
    #[error("node {node} is to run beside others, though it must run alone or is elsewhere, too")]
    Beside {
        /// The node.
        node: usize,
    },
}

/// What nodes may depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// Memory of its own.
    Block(u32),
    /// The memory in which blocks take turns.
    Arena,
    /// User code.
    Host,
}

/// An operand of a node, by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// An input.
    Input(usize),
    /// An output.
    Output(usize),
    /// Its work space.
    Scratch,
}

/// Who looks at memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// A node.
    Node(usize),
    /// Whoever comes after the run.
    After,
}

/// Who wrote memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// Somebody before the run.
    Before,
    /// A node.
    Node(u32),
}

/// What a range of memory holds: the bytes of a block as somebody wrote them. No block: scratch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// The block.
    pub block: Option<u32>,
    /// Its version.
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
    /// The node that it speaks of first, if any.
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

/// All checks, of a graph as it stands.
pub(super) fn verify(graph: &Graph) -> Result<(), Fault> {
    let order: Vec<u32> = (0..graph.nodes().len() as u32).collect();
    edges(graph, graph.edges())?;
    (0..graph.nodes().len()).try_for_each(|n| region::links(graph, n))?;
    replay(graph, &graph.layout, &order)?;
    graph.schedule().map_or(Ok(()), |found| schedule(graph, &graph.layout, found))
}

#[cfg(test)]
pub(super) mod tests;
