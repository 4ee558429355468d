//! Legal orders of the operations that need little memory. Finding the best one is NP-hard (Sethi,
//! 1975); of a few that are found quickly, the best one is taken, as [`super::peak`] judges. An
//! optimizer's updates move into the backward pass by this alone: each frees a gradient.

mod depth;
mod list;
mod precedence;
mod work;

use super::{Queue, Role};
use work::Work;

/// The operations in a few legal orders, first as they stand; `roles` are those of the blocks. Which
/// one needs least memory depends on what is computed again, too.
pub fn orders(queue: Queue, roles: &[Role]) -> Vec<Queue> {
    let others = legal(&Work::new(&queue, roles));
    let others = others.iter().filter(|order| !order.is_sorted());
    let others: Vec<Queue> = others.map(|order| queue.reordered(order)).collect();
    std::iter::once(queue).chain(others).collect()
}

/// Legal orders, those that are most like the recorded one first.
fn legal(work: &Work) -> [Vec<u32>; 4] {
    [list::early_frees(work), list::eager(work), list::least_peak(work), depth::first(work)]
}

#[cfg(test)]
mod tests;
