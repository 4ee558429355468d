//! Which legal order of the operations needs the least memory. Finding the best one is NP-hard
//! (Sethi, 1975); of a few that are found quickly, the best one is taken. An optimizer's updates
//! move into the backward pass by this alone: each frees a gradient.

mod depth;
mod list;
mod precedence;
mod work;

use super::peak::peak;
use super::{Queue, Role};
use work::Work;

/// The operations in an order that needs less memory than the one in which they stand; of those
/// that were tried the one that needs least. `roles` are those of the blocks.
pub fn better(queue: &Queue, roles: &[Role]) -> Option<Queue> {
    let (mut best, mut lowest) = (None, peak(queue, roles));
    for order in others(&Work::new(queue, roles)) {
        let other = queue.reordered(&order);
        let needed = peak(&other, roles);
        if needed < lowest {
            (best, lowest) = (Some(other), needed);
        }
    }
    best
}

/// Legal orders, those that are most like the recorded one first.
fn others(work: &Work) -> [Vec<u32>; 3] {
    [list::early_frees(work), list::least_peak(work), depth::first(work)]
}

#[cfg(test)]
mod tests;
