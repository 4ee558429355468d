//! Are all nodes that touch the same memory connected by a path of edges?

use std::ops::Range;

use super::{Fault, Graph, Resource};
use crate::graph::Edges;

/// Memory for the table of paths, in 64-bit words.
const TABLE_WORDS: usize = 8 << 20;

/// A node that touches a range of a resource.
pub(super) struct Touch {
    pub(super) node: usize,
    pub(super) bytes: Range<usize>,
    pub(super) writes: bool,
}

/// Checks that edges go forward, and that every two nodes one of which writes what the other
/// touches are connected from the earlier to the later.
pub(in crate::graph) fn edges(graph: &Graph, edges: &Edges) -> Result<(), Fault> {
    forward(edges)?;
    ordered(edges, 0..graph.nodes().len(), &touches(graph))
}

/// Checks that edges go forward.
pub(super) fn forward(edges: &Edges) -> Result<(), Fault> {
    for (node, row) in edges.iter().enumerate() {
        if let Some(&earlier) = row.iter().find(|&&earlier| earlier as usize >= node) {
            return Err(Fault::Backwards { node, earlier: earlier as usize });
        }
    }
    Ok(())
}

/// Checks that those of these nodes that meet are connected by edges between them. `touched` says
/// who of them touches what, in recorded order.
pub(super) fn ordered(
    edges: &Edges,
    nodes: Range<usize>,
    touched: &[(Resource, Vec<Touch>)],
) -> Result<(), Fault> {
    let words = (TABLE_WORDS / nodes.len().max(1)).clamp(1, nodes.len().div_ceil(64).max(1));
    nodes.clone().step_by(words * 64).try_for_each(|first| {
        let paths = Paths::new(edges, first..nodes.end, words);
        touched.iter().try_for_each(|(resource, touches)| conflicts(*resource, touches, &paths))
    })
}

/// Who touches what, in recorded order; nothing that is only read.
fn touches(graph: &Graph) -> Vec<(Resource, Vec<Touch>)> {
    let mut blocks: Vec<Vec<Touch>> = graph.roles().iter().map(|_| Vec::new()).collect();
    let mut host = Vec::new();
    for (node, n) in graph.nodes().iter().zip(0..) {
        let reads = graph.inputs(node).iter().map(|place| (place, false));
        for (place, writes) in reads.chain(graph.outputs(node).iter().map(|place| (place, true))) {
            let bytes = place.byte_range();
            if bytes.start < bytes.end {
                blocks[place.block as usize].push(Touch { node: n, bytes, writes });
            }
        }
        if node.op.effects.host {
            host.push(Touch { node: n, bytes: 0..1, writes: true });
        }
    }
    let blocks = (0..).zip(blocks).map(|(b, touches)| (Resource::Block(b), touches));
    let all = blocks.chain([(Resource::Host, host)]);
    all.filter(|(_, touches)| touches.iter().any(|touch| touch.writes)).collect()
}

/// Checks the pairs whose earlier node is among those that the paths start from.
fn conflicts(resource: Resource, touches: &[Touch], paths: &Paths) -> Result<(), Fault> {
    let from = touches.partition_point(|touch| touch.node < paths.first);
    for (t, one) in touches.iter().enumerate().skip(from) {
        if !paths.covers(one.node) {
            break;
        }
        let meets = |other: &&Touch| {
            let overlap = one.bytes.start < other.bytes.end && other.bytes.start < one.bytes.end;
            overlap && (one.writes || other.writes) && one.node != other.node
        };
        let unordered = |other: &&Touch| !paths.exists(one.node, other.node);
        if let Some(other) = touches[t + 1..].iter().filter(meets).find(unordered) {
            return Err(Fault::Unordered { earlier: one.node, later: other.node, resource });
        }
    }
    Ok(())
}

/// Which nodes can be reached from some nodes in a row.
struct Paths {
    first: usize,
    words: usize,
    /// For each node from `first` on, one bit for each node that paths start from.
    table: Vec<u64>,
}

impl Paths {
    /// All paths within some nodes from the first `64 * words` of them.
    fn new(edges: &Edges, nodes: Range<usize>, words: usize) -> Paths {
        let first = nodes.start;
        let mut paths = Paths { first, words, table: vec![0; nodes.len() * words] };
        for node in nodes {
            for &earlier in edges.row(node).iter().filter(|&&e| e as usize >= first) {
                paths.extend(earlier as usize, node);
            }
        }
        paths
    }

    /// What leads to `earlier` leads to `node`, and so does `earlier` itself.
    fn extend(&mut self, earlier: usize, node: usize) {
        let (from, to) = ((earlier - self.first) * self.words, (node - self.first) * self.words);
        for word in 0..self.words {
            self.table[to + word] |= self.table[from + word];
        }
        if self.covers(earlier) {
            let bit = earlier - self.first;
            self.table[to + bit / 64] |= 1 << (bit % 64);
        }
    }

    fn covers(&self, node: usize) -> bool {
        node - self.first < self.words * 64
    }

    fn exists(&self, earlier: usize, later: usize) -> bool {
        let bit = earlier - self.first;
        self.table[(later - self.first) * self.words + bit / 64] >> (bit % 64) & 1 == 1
    }
}
