//! Updates with a matrix product as their gradient, a block of its rows after the other.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use super::row_blocks::{RowBlocks, first_rows, row_bytes};
use crate::device::ALIGNMENT;
use crate::error::Result;
use crate::ops::{Family, Io, Kernel, Meta, Width};

/// Prepares `update` of these inputs and outputs, where `[a, b, product]` is what input 1, the
/// gradient, is made of; the kernel finds a in its place and b behind all inputs.
///
/// # Errors
/// Those of the two kernels.
pub fn prepare(
    update: &dyn Family,
    factors: [&Meta; 3],
    inputs: &[&Meta],
    outputs: &[&Meta],
    width: Width,
) -> Result<Arc<dyn Kernel>> {
    let product = RowBlocks::new(factors, width)?;
    let blocks = product.blocks();
    let gradient = factors[2];
    let has_rows = |meta: &Meta| meta.shape == gradient.shape;
    // The whole update where there is but one block: it then has the team for itself.
    let width = if blocks.is_split() { Width::ONE } else { width };
    let updates = blocks.for_both(|rows| {
        let cut =
            |meta: &&Meta| if has_rows(meta) { first_rows(meta, rows) } else { (*meta).clone() };
        let io: SmallVec<[Meta; 8]> = inputs.iter().chain(outputs).map(cut).collect();
        update.cpu(&io.iter().collect::<SmallVec<[&Meta; 8]>>(), width)
    })?;
    let step = |meta: &&Meta| if has_rows(meta) { row_bytes(meta) } else { 0 };
    let [inputs, outputs] = [inputs, outputs].map(|metas| metas.iter().map(step).collect());
    let bytes = first_rows(gradient, blocks.sizes()[0]).bytes().next_multiple_of(ALIGNMENT);
    Ok(Arc::new(Fused { product, updates, inputs, outputs, bytes }))
}

/// Bytes from a row to the next, of several tensors.
type Steps = SmallVec<[isize; 8]>;

/// A product, and the updates of a block and of the last one.
struct Fused {
    product: RowBlocks,
    updates: [Arc<dyn Kernel>; 2],
    /// For each input and output of the update, bytes from a row to the next; 0 where it has none.
    inputs: Steps,
    outputs: Steps,
    /// Bytes of a block of the gradient.
    bytes: usize,
}

impl Fused {
    /// Work space of one thread: a block of the gradient, and what the kernels need.
    fn space(&self) -> usize {
        let updates = self.updates.each_ref().map(|kernel| kernel.scratch());
        self.bytes + self.product.scratch().max(updates[0]).max(updates[1])
    }

    fn run_block(&self, io: &Io, rows: &Range<usize>, space: *mut u8) -> Result<()> {
        let (gradient, scratch) = (space, space.wrapping_add(self.bytes));
        let b = self.inputs.len();
        // SAFETY: `io` is what this was prepared for; each thread has work space of its own.
        unsafe { self.product.multiply(rows, io, [1, b], gradient, scratch)? };
        let from = |step: isize| step * rows.start as isize;
        let mut inputs: SmallVec<[*const u8; 8]> = { self.inputs.iter().enumerate() }
            .map(|(i, &step)| io.input::<u8>(i).wrapping_offset(from(step)))
            .collect();
        inputs[1] = gradient;
        let outputs: SmallVec<[*mut u8; 4]> = { self.outputs.iter().enumerate() }
            .map(|(o, &step)| io.output::<u8>(o).wrapping_offset(from(step)))
            .collect();
        let update = self.product.blocks().of(&self.updates, rows);
        // SAFETY: as above; blocks of rows are disjoint.
        update.run(&unsafe { Io::new(&inputs, &outputs, scratch) })
    }
}

impl Kernel for Fused {
    fn scratch(&self) -> usize {
        self.product.blocks().parts() * self.space()
    }

    fn bytes(&self) -> usize {
        size_of_val(self) + self.updates.iter().map(|kernel| kernel.bytes()).sum::<usize>()
    }

    fn run(&self, io: &Io) -> Result<()> {
        self.product.blocks().each(|part, rows| {
            self.run_block(io, rows, io.scratch::<u8>().wrapping_add(part * self.space()))
        })
    }

    fn check(&self, io: &Io) -> Result<()> {
        self.updates[0].check(io)
    }
}
