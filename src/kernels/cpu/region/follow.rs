//! A result in blocks of rows, each processed by a second kernel while it is in the cache.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::error::Result;
use crate::kernels::cpu::region::row_blocks::{RowBlocks, Steps};
use crate::kernels::{Io, Kernel};

/// An input of the second kernel.
#[derive(Clone, Copy)]
pub enum Input {
    /// The block.
    Block,
    /// An input of the operation, with the bytes from row to row.
    Given(usize, isize),
}

/// Where blocks are written.
#[derive(Clone, Copy)]
pub enum Destination {
    /// In scratch memory, with this many bytes per thread.
    Scratch(usize),
    /// In an output of the operation, with the bytes from row to row.
    Output(usize, isize),
}

/// See the module's documentation.
pub struct Followed {
    /// Computes the blocks.
    pub rows: RowBlocks,
    /// The inputs of the operation that the blocks are computed from.
    pub factors: SmallVec<[usize; 4]>,
    /// Where the blocks are written.
    pub destination: Destination,
    /// The second kernel, for a block and for the last one.
    pub kernels: [Arc<dyn Kernel>; 2],
    /// The inputs of the second kernel.
    pub inputs: SmallVec<[Input; 8]>,
    /// Bytes from row to row of its outputs, which come first among the operation's.
    pub outputs: Steps,
}

impl Followed {
    /// Bytes of scratch memory per thread for a block.
    fn block(&self) -> usize {
        if let Destination::Scratch(bytes) = self.destination { bytes } else { 0 }
    }

    /// Bytes of scratch memory per thread.
    fn space(&self) -> usize {
        let kernels = self.kernels.each_ref().map(|kernel| kernel.scratch());
        self.block() + self.rows.scratch().max(kernels[0]).max(kernels[1])
    }

    fn run_block(&self, io: &Io, rows: &Range<usize>, space: *mut u8) -> Result<()> {
        let from = |step: isize| step * rows.start as isize;
        let made = match self.destination {
            Destination::Scratch(_) => space,
            Destination::Output(o, step) => io.output::<u8>(o).wrapping_offset(from(step)),
        };
        let scratch = space.wrapping_add(self.block());
        // SAFETY: `io` is what this was prepared for; each thread has its own scratch memory.
        unsafe { self.rows.make(rows, |i| io.input(self.factors[i]), made, scratch)? };
        let input = |input: &Input| match *input {
            Input::Block => made.cast_const(),
            Input::Given(i, step) => io.input::<u8>(i).wrapping_offset(from(step)),
        };
        let inputs: SmallVec<[*const u8; 8]> = self.inputs.iter().map(input).collect();
        let outputs: SmallVec<[*mut u8; 4]> = { self.outputs.iter().enumerate() }
            .map(|(o, &step)| io.output::<u8>(o).wrapping_offset(from(step)))
            .collect();
        let kernel = self.rows.blocks().of(&self.kernels, rows);
        // SAFETY: as above; blocks of rows are disjoint.
        kernel.run(&unsafe { Io::new(&inputs, &outputs, scratch) })
    }
}

impl Kernel for Followed {
    fn scratch(&self) -> usize {
        self.rows.blocks().seats() * self.space()
    }

    fn threads(&self) -> usize {
        let alone = if self.rows.blocks().is_split() { 1 } else { self.kernels[0].threads() };
        self.rows.threads().max(alone)
    }

    fn bytes(&self) -> usize {
        size_of_val(self) + self.kernels.iter().map(|kernel| kernel.bytes()).sum::<usize>()
    }

    fn run(&self, io: &Io) -> Result<()> {
        self.rows.blocks().each(|seat, rows| {
            self.run_block(io, rows, io.scratch::<u8>().wrapping_add(seat * self.space()))
        })
    }

    /// What an update checks has the same places among the inputs of both.
    fn check(&self, io: &Io) -> Result<()> {
        self.kernels[0].check(io)
    }
}
