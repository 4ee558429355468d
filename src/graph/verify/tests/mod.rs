mod faults;
mod kept;
pub(in crate::graph) mod oracle;
pub(in crate::graph) mod programs;
mod properties;
mod ranges;
mod schedules;

use super::Graph;
use crate::graph::memory::layout::{Layout, OUTSIDE};

/// A layout with separate memory for each block and each node's scratch, none larger than 256
/// bytes.
pub(in crate::graph) fn separate(graph: &Graph) -> Layout {
    let mut layout = graph.layout.clone();
    let homes = layout.offsets.iter_mut().filter(|offset| **offset != OUTSIDE);
    homes.zip((0..).step_by(256)).for_each(|(home, offset)| *home = offset);
    let from = 256 * layout.offsets.len();
    layout.scratch.iter_mut().zip((from..).step_by(256)).for_each(|(s, offset)| s.1 = offset);
    layout.height = from + 256 * graph.ops().len();
    layout
}
