//! The memory that an order of operations needs: what judges orders and recomputation. It plans
//! nothing, and is as quick as reading the operations once.

use super::liveness;
use super::share::{self, Blocks};
use super::{Node, Queue, Role};
use crate::device::ALIGNMENT;

/// The most bytes of temporary blocks and scratch that live at once if a queue's operations run as
/// `nodes` names them, each rounded up to 64, those that share memory in place counted once.
pub fn peak(queue: &Queue, nodes: &[Node], roles: &[Role]) -> usize {
    let (places, bytes) = (queue.places(), queue.sizes());
    let lifetimes = liveness::lifetimes(nodes, places, roles.len());
    let blocks = Blocks { nodes, places, roles, bytes: &bytes, lifetimes: &lifetimes };
    let mut live = 0;
    let needed = changes(&blocks).into_iter().zip(nodes).map(|(change, node)| {
        live += change;
        live as usize + node.op.kernel.scratch().next_multiple_of(ALIGNMENT)
    });
    needed.max().unwrap_or(0)
}

/// How many more bytes live during each node than during the one before.
fn changes(blocks: &Blocks) -> Vec<isize> {
    let owners = share::owners(blocks);
    let mut ends = vec![0; owners.len()];
    for (life, &owner) in blocks.lifetimes.iter().zip(&owners).filter(|(life, _)| !life.is_never())
    {
        let end = &mut ends[owner as usize];
        *end = life.last.max(*end);
    }
    let mut changes = vec![0; blocks.nodes.len() + 1];
    for (block, life) in blocks.lifetimes.iter().enumerate() {
        let is_own = owners[block] as usize == block && !life.is_never();
        if is_own && blocks.roles[block] == Role::Temporary {
            let size = blocks.bytes[block].next_multiple_of(ALIGNMENT) as isize;
            changes[life.first as usize] += size;
            changes[ends[block] as usize + 1] -= size;
        }
    }
    changes
}
