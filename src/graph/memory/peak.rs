//! The memory that an order of operations needs, by which orders and recomputation are judged. It
//! does no planning and takes linear time.

use crate::device::ALIGNMENT;
use crate::graph::liveness::{self, Blocks};
use crate::graph::{Kernels, Queue, Role, layout};
use crate::packing;

/// The most bytes of temporary blocks and scratch that are live at once while a queue's operations
/// run, each rounded up to 64; blocks that share memory in place count once.
pub fn peak(queue: &Queue, roles: &[Role], kernels: &Kernels) -> usize {
    let (ops, bytes) = (queue.ops(), queue.sizes());
    let lifetimes = liveness::lifetimes(ops, roles.len());
    let blocks = Blocks { ops, roles, bytes: &bytes, lifetimes: &lifetimes };
    let (lifetimes, sizes) = layout::buffers(&blocks, &liveness::owners(&blocks));
    let sizes = sizes.into_iter().map(|size| size.next_multiple_of(ALIGNMENT));
    let live = packing::curve(ops.len(), lifetimes.into_iter().zip(sizes));
    let scratch = ops.iter().map(|op| kernels.scratch(op).next_multiple_of(ALIGNMENT));
    live.into_iter().zip(scratch).map(|(live, scratch)| live + scratch).max().unwrap_or(0)
}
