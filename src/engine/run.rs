//! Runs the operations of a bound graph.
#![allow(unsafe_code)]

use std::ops::Range;

use crate::graph::{Bound, Stopped};

/// Runs nodes of a graph, all of whose blocks an [`super::Executable`] has bound.
pub(super) fn replay(bound: &Bound, nodes: Range<usize>) -> std::result::Result<(), Stopped> {
    // SAFETY: the executable bound captured blocks, arguments with the recorded metas and results
    // to memory that it holds; it holds the run's guard, and the arena is backed.
    unsafe { bound.run_from(nodes.start, nodes.end) }
}

/// The same, up to the first node that produces a NaN or an infinity.
pub(super) fn replay_checked(
    bound: &Bound,
    nodes: Range<usize>,
) -> std::result::Result<(), Stopped> {
    // SAFETY: as for `replay`.
    unsafe { bound.run_checked(nodes) }
}

/// Checks the values of a node's arguments before a run.
pub(super) fn check(bound: &Bound, node: usize) -> std::result::Result<(), Stopped> {
    // SAFETY: as for `replay`; the values to check existed before the run.
    unsafe { bound.check(node) }
}
