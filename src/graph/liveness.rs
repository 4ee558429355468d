//! Liveness: the range of operations over which each block is needed.

use super::queue::{Node, Place};
use crate::packing::Lifetime;

/// The lifetime of each block.
pub fn lifetimes(nodes: &[Node], places: &[Place], blocks: usize) -> Vec<Lifetime> {
    let mut found = vec![Lifetime::NEVER; blocks];
    for (n, node) in nodes.iter().enumerate() {
        for place in node.inputs(places).iter().chain(node.outputs(places)) {
            let life = &mut found[place.block as usize];
            life.first = life.first.min(n as u32);
            life.last = n as u32;
        }
    }
    found
}
