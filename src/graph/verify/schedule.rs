//! Are nodes that several threads run at the same time kept apart wherever they touch the same
//! memory?

use rustc_hash::FxHashMap;

use super::edges::{Touch, forward, ordered};
use super::node::{Memory, locate};
use super::{Fault, Graph, Operand, Resource};
use crate::graph::Schedule;
use crate::graph::layout::Layout;
use crate::ops::Width;

/// Checks that only nodes which may do so run beside others, and that every two of a segment, one
/// of which writes bytes that the other touches, are connected by edges within the segment. Nodes
/// of different segments run one after the other anyway.
pub(in crate::graph) fn schedule(
    graph: &Graph,
    layout: &Layout,
    schedule: &Schedule,
) -> Result<(), Fault> {
    forward(&schedule.edges)?;
    let mut end = 0;
    for segment in &schedule.segments {
        let nodes = segment.start as usize..segment.end as usize;
        let may_run = |&n: &usize| {
            let op = &graph.nodes()[n].op;
            n >= end && op.width == Width::ONE && !op.effects.host
        };
        if let Some(node) = nodes.clone().find(|n| !may_run(n)) {
            return Err(Fault::Beside { node });
        }
        end = nodes.end;
        let mut touched: FxHashMap<Memory, Vec<Touch>> = FxHashMap::default();
        for node in nodes.clone() {
            let located = locate(graph, layout, node)?.into_iter();
            for located in located.filter(|located| !located.bytes.is_empty()) {
                let writes = !matches!(located.operand, Operand::Input(_));
                let touch = Touch { node, bytes: located.bytes, writes };
                touched.entry(located.memory).or_default().push(touch);
            }
        }
        let touched: Vec<_> = touched.into_iter().map(|(m, t)| (resource(m), t)).collect();
        ordered(&schedule.edges, nodes, &touched)?;
    }
    Ok(())
}

fn resource(memory: Memory) -> Resource {
    match memory {
        Memory::Arena => Resource::Arena,
        Memory::Block(block) => Resource::Block(block),
    }
}
