//! What each operation reads and writes, as byte ranges of resources.

use std::ops::Range;

use crate::graph::Role;
use crate::graph::csr::Csr;
use crate::graph::queue::{Op, Place};

/// A range of bytes of a resource that an operation reads or writes. Resources are the blocks, by
/// number, followed by the host, which keeps operations with user code in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The resource's number.
    pub resource: u32,
    /// Whether it is written; otherwise it is read.
    pub is_write: bool,
    /// The first byte.
    pub start: usize,
    /// One past the last byte; greater than `start`.
    pub end: usize,
}

impl Access {
    /// A read.
    pub fn read(resource: u32, range: Range<usize>) -> Self {
        Access { resource, is_write: false, start: range.start, end: range.end }
    }

    /// A write.
    pub fn write(resource: u32, range: Range<usize>) -> Self {
        Access { is_write: true, ..Access::read(resource, range) }
    }
}

/// The accesses of each node: reads, then writes. `blocks` is the number of blocks.
pub fn accesses(ops: &[Op], blocks: usize) -> Csr<Access> {
    let mut found = Csr::with_capacity(ops.len(), 3 * ops.len());
    for op in ops {
        for place in &op.inputs {
            add(&mut found, Access::read(place.block, place.byte_range()));
        }
        for place in &op.outputs {
            add(&mut found, Access::write(place.block, place.byte_range()));
        }
        if op.call.effects.host {
            add(&mut found, Access::write(blocks as u32, 0..1));
        }
        found.end_row();
    }
    found
}

/// Adds an access to the current row unless its range is empty.
pub(in crate::graph) fn add(found: &mut Csr<Access>, access: Access) {
    if access.start < access.end {
        found.push(access);
    }
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

/// Whether each resource is written.
pub fn written(accesses: &Csr<Access>, resources: usize) -> Vec<bool> {
    let mut written = vec![false; resources];
    let writes = accesses.items().iter().filter(|access| access.is_write);
    writes.for_each(|access| written[access.resource as usize] = true);
    written
}
