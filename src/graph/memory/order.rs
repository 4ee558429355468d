//! Legal orders of the operations that need little memory. Finding the best one is NP-hard (Sethi,
//! 1975); the best of a few that are quick to find is taken, as judged by [`Timeline::peak`]. This
//! alone moves an optimizer's updates into the backward pass: each frees a gradient.

mod list;

use std::cmp::Reverse;

use crate::graph::analysis::hazard;
use crate::graph::analysis::timeline::Timeline;
use crate::graph::{Csr, Edges, Kernels, Op, Queue, Role};

/// Operations in some order, with its timeline.
pub type Ordered = (Queue, Timeline);

/// The operations in a few legal orders, the recorded one first; `roles` has one entry per block.
/// Which of them needs least memory also depends on what is recomputed.
pub fn orders(queue: Queue, roles: &[Role], kernels: &Kernels) -> Vec<Ordered> {
    let recorded = ordered(queue, roles, kernels);
    let others: Vec<Ordered> =
        others(&recorded, roles).map(|other| reordered(&recorded, other)).collect();
    std::iter::once(recorded).chain(others).collect()
}

/// The recorded order and, if it is another one, the order that needs least memory without
/// recomputation. On the networks tried, one of these two was best with recomputation as well.
pub fn promising(queue: Queue, roles: &[Role], kernels: &Kernels) -> Vec<Ordered> {
    let recorded = ordered(queue, roles, kernels);
    let best = others(&recorded, roles)
        .map(|other| (other.1.peak(), other))
        .min_by_key(|&(peak, _)| peak)
        .filter(|&(peak, _)| peak < recorded.1.peak())
        .map(|(_, other)| reordered(&recorded, other));
    std::iter::once(recorded).chain(best).collect()
}

/// The operations in their order.
pub fn ordered(queue: Queue, roles: &[Role], kernels: &Kernels) -> Ordered {
    let line = Timeline::new(&queue, roles, kernels);
    (queue, line)
}

/// The operations in an order whose timeline is known.
fn reordered(recorded: &Ordered, (order, line): (Vec<u32>, Timeline)) -> Ordered {
    (recorded.0.sorted(&order), line)
}

/// Legal orders other than the recorded one, with their timelines.
fn others(recorded: &Ordered, roles: &[Role]) -> impl Iterator<Item = (Vec<u32>, Timeline)> {
    let (queue, line) = recorded;
    let legal = legal(&Work::new(recorded, roles)).into_iter().filter(|order| !order.is_sorted());
    legal.map(|order| {
        let line = line.reordered(queue, &order, roles);
        (order, line)
    })
}

/// Legal orders, those most similar to the recorded one first.
fn legal(work: &Work) -> [Vec<u32>; 4] {
    [list::early_frees(work), list::eager(work), list::least_peak(work), depth_first(work)]
}

struct Work<'a> {
    line: &'a Timeline,
    /// The nodes that must come before each node; one is listed twice if there are two reasons.
    before: Edges,
    /// The nodes that must come after each node.
    after: Edges,
    /// The nodes that use each temporary block.
    users: Csr<u32>,
}

impl Work<'_> {
    fn new<'a>((queue, line): &'a Ordered, roles: &[Role]) -> Work<'a> {
        let before = precedence(queue, roles);
        let row = |n: u32| before.row(n as usize).iter().map(move |&earlier| (earlier as usize, n));
        let after = Csr::sorted(line.nodes(), || (0..line.nodes() as u32).flat_map(row));
        Work { line, after, before, users: line.users() }
    }

    /// The number of nodes.
    fn nodes(&self) -> usize {
        self.line.nodes()
    }

    /// Whether it does not matter when a node runs: it uses no temporary block, and no other node
    /// has to wait for it.
    fn is_indifferent(&self, node: u32) -> bool {
        self.line.uses(node as usize).next().is_none() && self.after.row(node as usize).is_empty()
    }
}

/// The operations that must come before each operation: those with a hazard between them. And since
/// user code may access any memory that is visible to the user, and a run that fails leaves there what
/// was written until then, operations that write such memory are not moved across user code and what
/// may fail.
fn precedence(queue: &Queue, roles: &[Role]) -> Edges {
    let ops = queue.ops();
    let accesses = hazard::accesses(ops, roles.len());
    let hazards = hazard::hazards(&accesses, roles.len() + 1).edges;
    let around = around_barriers(ops, roles, &hazard::written(&accesses, roles.len() + 1));
    if around.is_empty() {
        return hazards;
    }
    let recorded = || (0..ops.len()).flat_map(|n| hazards.row(n).iter().map(move |&m| (n, m)));
    Csr::sorted(ops.len(), || recorded().chain(around.iter().copied()))
}

/// The edges between what runs user code or may fail, in its order, and what writes visible memory,
/// as (later, earlier).
fn around_barriers(ops: &[Op], roles: &[Role], written: &[bool]) -> Vec<(usize, u32)> {
    let is_given = |b: u32| roles[b as usize] == Role::Argument && !written[b as usize];
    let may_fail = |op: &Op| op.may_fail() && !op.is_checked_before(is_given);
    let is_barrier = |op: &Op| op.call.effects.host || may_fail(op);
    let barriers: Vec<u32> = numbers(ops, is_barrier).collect();
    let lasts = |op: &Op| op.outputs.iter().any(|to| roles[to.block as usize].lasts());
    let writes = numbers(ops, |op| lasts(op) && !is_barrier(op));
    let around = writes.flat_map(|node| neighbours(&barriers, node));
    around.chain(barriers.windows(2).map(|pair| (pair[1] as usize, pair[0]))).collect()
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

/// Depth-first order, from the nodes without successors in recorded order: a node's predecessors are
/// computed just before it, those that need most memory first (after Sethi and Ullman, 1970, for
/// trees).
fn depth_first(work: &Work) -> Vec<u32> {
    let sorted = by_need(work);
    let mut order = Vec::with_capacity(work.nodes());
    let mut is_met = vec![false; work.nodes()];
    // Nodes whose predecessors are being placed, each with how many have been visited.
    let mut path: Vec<(u32, usize)> = Vec::new();
    let is_last = |&node: &u32| work.after.row(node as usize).is_empty();
    for last in (0..work.nodes() as u32).filter(is_last) {
        path.push((last, 0));
        while let Some((node, looked)) = path.pop() {
            match sorted[node as usize].get(looked) {
                Some(&earlier) => {
                    path.push((node, looked + 1));
                    if !std::mem::replace(&mut is_met[earlier as usize], true) {
                        path.push((earlier, 0));
                    }
                }
                None => order.push(node),
            }
        }
    }
    order
}

/// The predecessors of each node in the order in which to compute them: those that need much memory
/// and leave little in use come first.
fn by_need(work: &Work) -> Vec<Vec<u32>> {
    let mut needs = vec![0usize; work.nodes()];
    let mut sorted = Vec::with_capacity(work.nodes());
    for node in 0..work.nodes() {
        let mut before = work.before.row(node).to_vec();
        let left = |earlier: u32| needs[earlier as usize].saturating_sub(result(work, earlier));
        before.sort_unstable_by_key(|&earlier| (Reverse(left(earlier)), earlier));
        let (mut need, mut held) = (result(work, node as u32), 0usize);
        for &earlier in &before {
            need = need.max(needs[earlier as usize].saturating_add(held));
            held = held.saturating_add(result(work, earlier));
        }
        needs[node] = need.max(held.saturating_add(result(work, node as u32)));
        sorted.push(before);
    }
    sorted
}

/// The bytes that a node is the first to use.
fn result(work: &Work, node: u32) -> usize {
    work.line.makes.row(node as usize).iter().map(|&block| work.line.sizes[block as usize]).sum()
}

#[cfg(test)]
mod tests;
