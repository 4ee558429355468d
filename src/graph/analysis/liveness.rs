//! Liveness: the range of operations over which each block is needed.

use crate::graph::Op;
use crate::packing::Lifetime;

/// The lifetime of each block.
pub fn lifetimes(ops: &[Op], blocks: usize) -> Vec<Lifetime> {
    let mut found = vec![Lifetime::NEVER; blocks];
    for (n, op) in ops.iter().enumerate() {
        for place in op.places() {
            let life = &mut found[place.block as usize];
            life.first = life.first.min(n as u32);
            life.last = n as u32;
        }
    }
    found
}
