//! Legal orders of the operations that need little memory. Finding the best one is NP-hard (Sethi,
//! 1975); the best of a few that are quick to find is taken, as judged by [`super::peak`]. This
//! alone moves an optimizer's updates into the backward pass: each frees a gradient.

mod depth;
mod list;
mod precedence;
mod work;

use crate::graph::peak::peak;
use crate::graph::{Kernels, Queue, Role};
use work::Work;

/// The operations in a few legal orders, the recorded one first; `roles` has one entry per block.
/// Which of them needs least memory also depends on what is recomputed.
pub fn orders(queue: Queue, roles: &[Role]) -> Vec<Queue> {
    let others: Vec<Queue> = others(&queue, roles).collect();
    std::iter::once(queue).chain(others).collect()
}

/// The recorded order and, if it is another one, the order that needs least memory without
/// recomputation. On the networks tried, one of these two was best with recomputation as well.
pub fn promising(queue: Queue, roles: &[Role], kernels: &Kernels) -> Vec<Queue> {
    let recorded = peak(&queue, roles, kernels);
    let best = others(&queue, roles)
        .map(|queue| (peak(&queue, roles, kernels), queue))
        .min_by_key(|&(peak, _)| peak)
        .filter(|&(peak, _)| peak < recorded)
        .map(|(_, queue)| queue);
    std::iter::once(queue).chain(best).collect()
}

/// The operations in legal orders other than the recorded one.
fn others(queue: &Queue, roles: &[Role]) -> impl Iterator<Item = Queue> {
    let legal = legal(&Work::new(queue, roles)).into_iter();
    legal.filter(|order| !order.is_sorted()).map(|order| queue.sorted(&order))
}

/// Legal orders, those most similar to the recorded one first.
fn legal(work: &Work) -> [Vec<u32>; 4] {
    [list::early_frees(work), list::eager(work), list::least_peak(work), depth::first(work)]
}

#[cfg(test)]
mod tests;
