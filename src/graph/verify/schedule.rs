//! Are nodes that several threads may run concurrently ordered wherever they touch the same memory?

use rustc_hash::FxHashMap;

use super::edges::{Order, Touch, Touched, forward};
use super::node::{Memory, locate};
use super::ranges::Ranges;
use super::{Fault, Graph, Operand, Resource};
use crate::graph::Schedule;
use crate::graph::layout::Layout;
use crate::kernels::Width;

/// Checks that only nodes that may run beside others do so, and that any two nodes of a segment,
/// one of which writes bytes that the other touches, are connected by edges within the segment.
/// Nodes of different segments never run concurrently.
pub(in crate::graph) fn schedule(
    graph: &Graph,
    layout: &Layout,
    schedule: &Schedule,
) -> Result<(), Fault> {
    forward(&schedule.edges)?;
    let mut order = Order::new(&schedule.edges);
    let mut end = 0;
    for segment in &schedule.segments {
        let nodes = segment.start as usize..segment.end as usize;
        let may_run = |&n: &usize| {
            let op = &graph.kernels()[n];
            n >= end && op.width == Width::ONE && !op.effects.host
        };
        if let Some(node) = nodes.clone().find(|n| !may_run(n)) {
            return Err(Fault::Beside { node });
        }
        end = nodes.end;
        let mut arena: Ranges<Touched> = Ranges::Nothing;
        let mut blocks: FxHashMap<u32, Ranges<Touched>> = FxHashMap::default();
        for node in nodes {
            for located in locate(graph, layout, node)? {
                let writes = !matches!(located.operand, Operand::Input(_));
                let touch = Touch { node, bytes: located.bytes, writes };
                let ranges = match located.memory {
                    Memory::Arena => &mut arena,
                    Memory::Block(block) => blocks.entry(block).or_default(),
                };
                order.touch(ranges, resource(located.memory), touch)?;
            }
        }
    }
    Ok(())
}

fn resource(memory: Memory) -> Resource {
    match memory {
        Memory::Arena => Resource::Arena,
        Memory::Block(block) => Resource::Block(block),
    }
}
