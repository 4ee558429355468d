//! The precedence between operations.

use crate::graph::access::accesses;
use crate::graph::{Csr, Edges, Op, Queue, Role, hazard};

/// The operations that must come before each operation: those with a hazard between them. And since
/// user code may access any memory that is visible to the user, operations that write such memory
/// are not moved across user code.
pub(super) fn precedence(queue: &Queue, roles: &[Role]) -> Edges {
    let ops = queue.ops();
    let accesses = accesses(ops, roles.len());
    let hazards = hazard::hazards(&accesses, roles.len() + 1).edges;
    let is_host = |op: &Op| op.call.effects.host;
    let hosts: Vec<u32> = numbers(ops, is_host).collect();
    if hosts.is_empty() {
        return hazards;
    }
    let is_seen = |op: &Op| {
        let mut roles = op.outputs.iter().map(|to| roles[to.block as usize]);
        roles.any(|role| matches!(role, Role::Argument | Role::Captured))
    };
    let writes: Vec<u32> = numbers(ops, |op| is_seen(op) && !is_host(op)).collect();
    let around = || writes.iter().flat_map(|&node| neighbours(&hosts, node));
    let recorded = || (0..ops.len()).flat_map(|n| hazards.row(n).iter().map(move |&m| (n, m)));
    Csr::sorted(ops.len(), || recorded().chain(around()))
}

fn numbers(ops: &[Op], is: impl Fn(&Op) -> bool) -> impl Iterator<Item = u32> {
    (0u32..).zip(ops).filter(move |(_, op)| is(op)).map(|(n, _)| n)
}

/// The edges between a node and its nearest `others` on either side, as (later, earlier).
fn neighbours(others: &[u32], node: u32) -> impl Iterator<Item = (usize, u32)> {
    let next = others.partition_point(|&other| other < node);
    let before = next.checked_sub(1).map(|last| (node as usize, others[last]));
    before.into_iter().chain(others.get(next).map(|&other| (other as usize, node)))
}
