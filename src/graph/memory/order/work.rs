//! The input to ordering: precedence, and which nodes use which memory.

use super::precedence::precedence;
use crate::device::ALIGNMENT;
use crate::graph::access::temporaries;
use crate::graph::{Csr, Edges, Queue, Role};

pub(super) struct Work {
    /// The nodes that must come before each node; one is listed twice if there are two reasons.
    pub(super) before: Edges,
    /// The nodes that must come after each node.
    pub(super) after: Edges,
    /// The temporary blocks that each node uses, each once.
    pub(super) blocks: Csr<u32>,
    /// The nodes that use each temporary block.
    pub(super) users: Csr<u32>,
    /// The size of each block in the arena.
    pub(super) sizes: Vec<usize>,
}

impl Work {
    pub(super) fn new(queue: &Queue, roles: &[Role]) -> Work {
        let before = precedence(queue, roles);
        let blocks = blocks(queue, roles);
        let sizes = queue.sizes().into_iter().map(|bytes| bytes.next_multiple_of(ALIGNMENT));
        Work {
            after: inverse(&before, before.rows()),
            before,
            users: inverse(&blocks, roles.len()),
            blocks,
            sizes: sizes.collect(),
        }
    }

    /// The number of nodes.
    pub(super) fn nodes(&self) -> usize {
        self.before.rows()
    }

    /// Whether it does not matter when a node runs: it uses no temporary block, and no other node
    /// has to wait for it.
    pub(super) fn is_indifferent(&self, node: u32) -> bool {
        self.blocks.row(node as usize).is_empty() && self.after.row(node as usize).is_empty()
    }
}

fn blocks(queue: &Queue, roles: &[Role]) -> Csr<u32> {
    let mut blocks = Csr::with_capacity(queue.ops().len(), 3 * queue.ops().len());
    for op in queue.ops() {
        temporaries(op.places(), roles).into_iter().for_each(|block| blocks.push(block));
        blocks.end_row();
    }
    blocks
}

/// The rows that contain each item.
fn inverse(lists: &Csr<u32>, items: usize) -> Csr<u32> {
    let pairs = || {
        (0u32..).zip(lists.iter()).flat_map(|(n, row)| row.iter().map(move |&i| (i as usize, n)))
    };
    Csr::sorted(items, pairs)
}
