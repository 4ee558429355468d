//! Depth-first order: a node's predecessors are computed just before it, those that need most
//! memory first (after Sethi and Ullman, 1970, for trees).

use std::cmp::Reverse;

use super::work::Work;

/// The order of a depth-first search from the nodes without successors, taken in recorded order.
pub(super) fn first(work: &Work) -> Vec<u32> {
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
        before.sort_by_key(|&earlier| (Reverse(left(earlier)), earlier));
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
    let is_first = |block: &&u32| work.users.row(**block as usize).first() == Some(&node);
    let blocks = work.blocks.row(node as usize).iter().filter(is_first);
    blocks.map(|&block| work.sizes[block as usize]).sum()
}
