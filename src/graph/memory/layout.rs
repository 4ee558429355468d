//! The placement of temporary blocks and scratch in the arena.

use std::ops::Range;
use std::sync::Arc;

use crate::device::ALIGNMENT;
use crate::graph::liveness::{self, Blocks};
use crate::graph::{Role, schedule};
use crate::kernels::Prepared;
use crate::packing::{self, Lifetime};

/// The offset of blocks outside the arena.
pub(in crate::graph) const OUTSIDE: usize = usize::MAX;

/// Offsets in the arena.
#[derive(Clone, Debug)]
pub(in crate::graph) struct Layout {
    /// By block.
    pub(in crate::graph) offsets: Vec<usize>,
    /// (node, offset), in ascending order.
    pub(in crate::graph) scratch: Vec<(u32, usize)>,
    /// Bytes of the arena.
    pub(in crate::graph) height: usize,
    /// The most bytes that are live at once.
    pub(in crate::graph) bound: usize,
}

impl Layout {
    /// Applies in-place sharing and plans the arena. Nodes of a segment may run concurrently as far
    /// as the arena then takes at most `most_bytes`.
    pub(in crate::graph) fn new(
        blocks: &Blocks,
        kernels: &[Arc<Prepared>],
        segments: &[Range<u32>],
        most_bytes: usize,
    ) -> Layout {
        let owners = liveness::owners(blocks);
        let (mut lifetimes, mut sizes) = buffers(blocks, &owners);
        let scratch = scratch(kernels);
        lifetimes.extend(scratch.iter().map(|&(n, _)| Lifetime { first: n, last: n }));
        sizes.extend(scratch.iter().map(|&(_, bytes)| bytes));
        let roundings = schedule::roundings(&lifetimes, &sizes, segments, most_bytes);
        let mut plans = roundings.map(|lifetimes| packing::plan(&lifetimes, &sizes, ALIGNMENT));
        let mut plan = plans.next().expect("there is one at least");
        while plan.height > most_bytes {
            let Some(lower) = plans.next() else { break };
            plan = lower;
        }
        drop(plans);
        let is_inside = |block: usize| {
            blocks.roles[block] == Role::Temporary && !blocks.lifetimes[block].is_never()
        };
        let offset = |(block, &owner): (usize, &u32)| {
            if is_inside(block) { plan.offsets[owner as usize] } else { OUTSIDE }
        };
        let offsets = owners.iter().enumerate().map(offset).collect();
        let places = plan.offsets[owners.len()..].iter();
        let scratch = scratch.iter().zip(places).map(|(&(n, _), &offset)| (n, offset)).collect();
        Layout { offsets, scratch, height: plan.height, bound: plan.bound }
    }

    /// The offset of a node's scratch, if it needs any.
    pub(in crate::graph) fn scratch_offset(&self, node: u32) -> Option<usize> {
        let found = self.scratch.binary_search_by_key(&node, |&(n, _)| n).ok()?;
        Some(self.scratch[found].1)
    }
}

/// By block: the lifetime and size of what owns memory in the arena; `Lifetime::NEVER` for others.
pub(in crate::graph) fn buffers(blocks: &Blocks, owners: &[u32]) -> (Vec<Lifetime>, Vec<usize>) {
    let mut lifetimes = vec![Lifetime::NEVER; owners.len()];
    let mut sizes = vec![0; owners.len()];
    let is_temporary = |block: &usize| blocks.roles[*block] == Role::Temporary;
    for block in (0..owners.len()).filter(is_temporary) {
        let (life, owner) = (blocks.lifetimes[block], owners[block] as usize);
        lifetimes[owner].first = lifetimes[owner].first.min(life.first);
        lifetimes[owner].last = lifetimes[owner].last.max(life.last);
        sizes[owner] = blocks.bytes[block];
    }
    (lifetimes, sizes)
}

/// The nodes that need scratch, with its size in bytes.
fn scratch(kernels: &[Arc<Prepared>]) -> Vec<(u32, usize)> {
    let sizes = kernels.iter().map(|op| op.kernel.scratch());
    (0u32..).zip(sizes).filter(|&(_, bytes)| bytes > 0).collect()
}
