//! Liveness: the range of operations over which each block is needed; and in-place sharing: an
//! output takes over the memory of an input that is not needed afterwards.

use smallvec::SmallVec;

use crate::graph::{Op, Place, Role};
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

/// The temporary blocks among these places, each once, in ascending order.
pub(in crate::graph) fn temporaries<'a>(
    places: impl Iterator<Item = &'a Place>,
    roles: &[Role],
) -> Vec<u32> {
    let is_temporary = |block: &u32| roles[*block as usize] == Role::Temporary;
    let mut found: Vec<u32> = places.map(|place| place.block).filter(is_temporary).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// Operations, and what is known of each block.
pub struct Blocks<'a> {
    /// The operations.
    pub ops: &'a [Op],
    /// The role of each block.
    pub roles: &'a [Role],
    /// The size of each block.
    pub bytes: &'a [usize],
    /// The lifetime of each block.
    pub lifetimes: &'a [Lifetime],
}

/// For each block, the one whose memory it takes over: itself if it takes over none.
pub fn owners(blocks: &Blocks) -> Vec<u32> {
    let mut owners: Vec<u32> = (0..blocks.bytes.len() as u32).collect();
    for (n, op) in (0u32..).zip(blocks.ops) {
        for (from, to) in pairs(op, |from, to| blocks.may_share(n, from, to)) {
            // Chains resolve themselves: the owner of `from` was found at an earlier node.
            owners[to as usize] = owners[from as usize];
        }
    }
    owners
}

/// The pairs of blocks (input, output) of an operation that share memory: both have the same meta,
/// the operation uses each of them once, and `may` allows it. `may` must check that both places are
/// whole temporary blocks, the input's not needed after the operation and the output's not before
/// it.
pub(in crate::graph) fn pairs(
    op: &Op,
    may: impl Fn(&Place, &Place) -> bool,
) -> SmallVec<[(u32, u32); 2]> {
    let times = |block: u32| op.places().filter(|p| p.block == block).count();
    let mut found = SmallVec::<[(u32, u32); 2]>::new();
    for &(i, o) in op.call.kind.family().in_place() {
        let (Some(from), Some(to)) = (op.inputs.get(i), op.outputs.get(o)) else { continue };
        let is_free = found.iter().all(|pair| pair.0 != from.block && pair.1 != to.block);
        let fits = is_free && from.meta == to.meta && may(from, to);
        if fits && times(from.block) == 1 && times(to.block) == 1 {
            found.push((from.block, to.block));
        }
    }
    found
}

impl Blocks<'_> {
    /// Whether node `n` may write `to` in the memory of `from`.
    fn may_share(&self, n: u32, from: &Place, to: &Place) -> bool {
        let life = |place: &Place| self.lifetimes[place.block as usize];
        let meets = life(from).last == n && life(to).first == n;
        meets && self.is_whole(from) && self.is_whole(to)
    }

    /// Whether the place covers all of a temporary block.
    fn is_whole(&self, place: &Place) -> bool {
        let block = place.block as usize;
        self.roles[block] == Role::Temporary && place.is_whole(self.bytes[block])
    }
}

#[cfg(test)]
mod tests;
