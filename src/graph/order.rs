//! Legal orders of the operations that need little memory. Finding the best one is NP-hard (Sethi,
//! 1975); of a few that are found quickly, the best one is taken, as [`super::peak`] judges. An
//! optimizer's updates move into the backward pass by this alone: each frees a gradient.

mod depth;
mod list;
mod precedence;
mod work;

use super::peak::peak;
use super::{Node, Queue, Role};
use work::Work;

/// The operations in a few legal orders, first as they stand; `roles` are those of the blocks. Which
/// one needs least memory depends on what is computed again, too.
pub fn orders(queue: Queue, roles: &[Role]) -> Vec<Queue> {
    let others: Vec<Queue> = others(&queue, roles).map(|nodes| queue.with_nodes(nodes)).collect();
    std::iter::once(queue).chain(others).collect()
}

/// Of these orders the first, and the one that needs least memory as it is, if it is another one.
/// With what is computed again in each, this found the best of all on the networks tried.
pub fn promising(queue: Queue, roles: &[Role]) -> Vec<Queue> {
    let recorded = peak(&queue, queue.nodes(), roles);
    let best = others(&queue, roles)
        .map(|nodes| (peak(&queue, &nodes, roles), nodes))
        .min_by_key(|&(peak, _)| peak)
        .filter(|&(peak, _)| peak < recorded)
        .map(|(_, nodes)| queue.with_nodes(nodes));
    std::iter::once(queue).chain(best).collect()
}

/// The operations in orders that are not the recorded one.
fn others(queue: &Queue, roles: &[Role]) -> impl Iterator<Item = Vec<Node>> {
    let legal = legal(&Work::new(queue, roles)).into_iter();
    legal.filter(|order| !order.is_sorted()).map(|order| queue.sorted(&order))
}

/// Legal orders, those that are most like the recorded one first.
fn legal(work: &Work) -> [Vec<u32>; 4] {
    [list::early_frees(work), list::eager(work), list::least_peak(work), depth::first(work)]
}

#[cfg(test)]
mod tests;
