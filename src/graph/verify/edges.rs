//! Are all nodes that touch the same memory connected by a path of edges, and those that several
//! threads may run concurrently by one within their segment?

use std::ops::Range;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::node::{Memory, locate};
use super::ranges::Ranges;
use super::{Fault, Graph, Operand, Resource};
use crate::graph::memory::layout::Layout;
use crate::graph::{Edges, Schedule};

/// Checks that edges go forward, and that a path of edges leads from the earlier to the later of
/// any two nodes one of which writes what the other touches.
pub(in crate::graph) fn edges(graph: &Graph, edges: &Edges) -> Result<(), Fault> {
    forward(edges)?;
    let mut order = Order::new(edges);
    let mut blocks: Vec<Ranges<Touched>> = vec![Ranges::Nothing; graph.roles().len()];
    let mut host = Ranges::Nothing;
    for (n, op) in graph.ops().iter().enumerate() {
        let reads = op.inputs.iter().map(|place| (place, false));
        for (place, writes) in reads.chain(op.outputs.iter().map(|place| (place, true))) {
            let touch = Touch { node: n, bytes: place.byte_range(), writes };
            let resource = Resource::Block(place.block);
            order.touch(&mut blocks[place.block as usize], resource, touch)?;
        }
        if op.call.effects.host {
            order.touch(&mut host, Resource::Host, Touch { node: n, bytes: 0..1, writes: true })?;
        }
    }
    Ok(())
}

/// Checks that edges go forward.
fn forward(edges: &Edges) -> Result<(), Fault> {
    for (node, row) in edges.iter().enumerate() {
        if let Some(&earlier) = row.iter().find(|&&earlier| earlier as usize >= node) {
            return Err(Fault::Backwards { node, earlier: earlier as usize });
        }
    }
    Ok(())
}

/// A node that touches a range of a resource.
struct Touch {
    node: usize,
    bytes: Range<usize>,
    writes: bool,
}

/// The latest accesses to some bytes: the nodes after which later accesses have to come, without
/// those that the others imply.
#[derive(Clone, Debug, Default)]
struct Touched {
    writer: Option<u32>,
    /// The nodes that have read since.
    readers: SmallVec<[u32; 3]>,
}

/// Checks nodes in recorded order. A writer comes after all earlier accesses to the bytes, so
/// coming after the writer implies coming after all of these.
struct Order<'a> {
    edges: &'a Edges,
    /// By node: the number of the last search that visited it.
    searched: Vec<u32>,
    searches: u32,
}

impl<'a> Order<'a> {
    fn new(edges: &'a Edges) -> Self {
        Order { edges, searched: Vec::new(), searches: 0 }
    }

    /// Checks that a node comes after the earlier accesses to the bytes that it touches, where it
    /// has to.
    fn touch(
        &mut self,
        ranges: &mut Ranges<Touched>,
        resource: Resource,
        touch: Touch,
    ) -> Result<(), Fault> {
        let later = touch.node;
        ranges.update(touch.bytes.clone(), |touched: &mut Touched| {
            // Each reader was checked to come after the writer.
            let before = match touch.writes && !touched.readers.is_empty() {
                true => &touched.readers[..],
                false => touched.writer.as_slice(),
            };
            for earlier in before.iter().map(|&node| node as usize) {
                if earlier != later && !self.has_path(earlier, later) {
                    return Err(Fault::Unordered { earlier, later, resource });
                }
            }
            if !touch.writes && touched.readers.last() != Some(&(later as u32)) {
                touched.readers.push(later as u32);
            }
            Ok(())
        })?;
        if touch.writes {
            let writer = Some(later as u32);
            ranges.set(touch.bytes, Touched { writer, readers: SmallVec::new() });
        }
        Ok(())
    }

    /// Whether a path leads from one node to another. Mostly it is a single edge; otherwise edges
    /// are followed backwards.
    fn has_path(&mut self, earlier: usize, later: usize) -> bool {
        if self.edges.row(later).binary_search(&(earlier as u32)).is_ok() {
            return true;
        }
        self.searched.resize(self.edges.rows(), 0);
        self.searches += 1;
        let mut open = vec![later];
        while let Some(node) = open.pop() {
            for &before in self.edges.row(node) {
                let before = before as usize;
                if before == earlier {
                    return true;
                }
                let known = std::mem::replace(&mut self.searched[before], self.searches);
                if before > earlier && known != self.searches {
                    open.push(before);
                }
            }
        }
        false
    }
}

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
            n >= end && !op.effects.host
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
