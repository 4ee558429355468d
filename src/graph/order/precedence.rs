//! The precedence between operations.

use crate::graph::access::accesses;
use crate::graph::{Csr, Edges, Node, Queue, Role, hazard};

/// The operations that must come before each operation: those with a hazard between them. And since
/// user code may access any memory that is visible to the user, operations that write such memory
/// are not moved across user code.
pub(super) fn precedence(queue: &Queue, roles: &[Role]) -> Edges {
    let nodes = queue.nodes();
    let accesses = accesses(nodes, queue.places(), roles.len());
    let hazards = hazard::hazards(&accesses, roles.len() + 1).edges;
    let is_host = |node: &Node| node.op.effects.host;
    let hosts: Vec<u32> = numbers(nodes, is_host).collect();
    if hosts.is_empty() {
        return hazards;
    }
    let is_seen = |node: &Node| {
        let role = |block: u32| roles[block as usize];
        queue
            .outputs(node)
            .iter()
            .any(|to| matches!(role(to.block), Role::Argument | Role::Captured))
    };
    let writes: Vec<u32> = numbers(nodes, |node| is_seen(node) && !is_host(node)).collect();
    let around = || writes.iter().flat_map(|&node| neighbours(&hosts, node));
    let recorded = || (0..nodes.len()).flat_map(|n| hazards.row(n).iter().map(move |&m| (n, m)));
    Csr::sorted(nodes.len(), || recorded().chain(around()))
}

fn numbers(nodes: &[Node], is: impl Fn(&Node) -> bool) -> impl Iterator<Item = u32> {
    (0u32..).zip(nodes).filter(move |(_, node)| is(node)).map(|(n, _)| n)
}

/// The edges between a node and its nearest `others` on either side, as (later, earlier).
fn neighbours(others: &[u32], node: u32) -> impl Iterator<Item = (usize, u32)> {
    let next = others.partition_point(|&other| other < node);
    let before = next.checked_sub(1).map(|last| (node as usize, others[last]));
    before.into_iter().chain(others.get(next).map(|&other| (other as usize, node)))
}
