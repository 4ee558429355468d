//! In-place sharing: an output that takes the memory of an input that is needed no more.

use smallvec::SmallVec;

use super::Role;
use super::liveness::Lifetime;
use super::queue::{Node, Place};

/// Nodes, places, and what is known of each block.
pub struct Blocks<'a> {
    /// The operations.
    pub nodes: &'a [Node],
    /// Their places.
    pub places: &'a [Place],
    /// What each block is.
    pub roles: &'a [Role],
    /// The size of each block.
    pub bytes: &'a [usize],
    /// The lifetime of each block.
    pub lifetimes: &'a [Lifetime],
}

/// For each block the one whose memory it takes, at the same place: itself where it takes none.
pub fn owners(blocks: &Blocks) -> Vec<u32> {
    let mut owners: Vec<u32> = (0..blocks.bytes.len() as u32).collect();
    for (n, node) in blocks.nodes.iter().enumerate() {
        let mut taken: SmallVec<[u32; 2]> = SmallVec::new();
        for &(i, o) in node.op.kind.family().in_place() {
            let Some((from, to)) = blocks.pair(n as u32, node, i, o) else { continue };
            if owners[to as usize] == to && !taken.contains(&from) {
                // Chains: the owner of what is taken was found at an earlier node.
                owners[to as usize] = owners[from as usize];
                taken.push(from);
            }
        }
    }
    owners
}

impl Blocks<'_> {
    /// The blocks of input `i` and output `o` where these may be one.
    fn pair(&self, n: u32, node: &Node, i: usize, o: usize) -> Option<(u32, u32)> {
        let (inputs, outputs) = (node.inputs(self.places), node.outputs(self.places));
        let (from, to) = (inputs.get(i)?, outputs.get(o)?);
        let is_last = self.lifetimes[from.block as usize].last == n;
        let is_first = self.lifetimes[to.block as usize].first == n;
        let fits = from.meta == to.meta && self.is_whole(from) && self.is_whole(to);
        let is_only = |place: &Place, all: &[Place], at: usize| {
            all.iter().enumerate().all(|(k, other)| k == at || other.block != place.block)
        };
        let are_only = || {
            is_only(from, inputs, i)
                && is_only(to, outputs, o)
                && is_only(from, outputs, usize::MAX)
                && is_only(to, inputs, usize::MAX)
        };
        (is_last && is_first && fits && are_only()).then_some((from.block, to.block))
    }

    /// Whether the place is all of a block that lives within the run.
    fn is_whole(&self, place: &Place) -> bool {
        let bytes = self.bytes[place.block as usize];
        self.roles[place.block as usize] == Role::Temporary
            && place.meta.bytes() == bytes
            && place.byte_range() == (0..bytes)
    }
}

#[cfg(test)]
mod tests;
