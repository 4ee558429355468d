//! A result in blocks of rows, and a kernel that goes on with each block while it is in the cache.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use super::row_blocks::{RowBlocks, Steps};
use crate::error::Result;
use crate::ops::{Io, Kernel};

/// What a kernel reads that goes on with a block.
#[derive(Clone, Copy)]
pub enum Input {
    /// The block.
    Block,
    /// An input of the operation, with the bytes from a row to the next.
    Given(usize, isize),
}

/// Where blocks are made.
#[derive(Clone, Copy)]
pub enum Target {
    /// In work space, so many bytes of each thread.
    Scratch(usize),
    /// In an output of the operation, with the bytes from a row to the next.
    Output(usize, isize),
}

/// See the module's documentation.
pub struct Followed {
    /// What makes the blocks.
    pub rows: RowBlocks,
    /// The inputs of the operation that they are made of.
    pub factors: SmallVec<[usize; 4]>,
    /// Where they are made.
    pub target: Target,
    /// What goes on with a block, and with the last one.
    pub kernels: [Arc<dyn Kernel>; 2],
    /// What these read.
    pub inputs: SmallVec<[Input; 8]>,
    /// Of the outputs that they write, which come first.
    pub outputs: Steps,
}

impl Followed {
    /// Work space of one thread for blocks.
    fn block(&self) -> usize {
        if let Target::Scratch(bytes) = self.target { bytes } else { 0 }
    }

    /// Work space of one thread.
    fn space(&self) -> usize {
        let kernels = self.kernels.each_ref().map(|kernel| kernel.scratch());
        self.block() + self.rows.scratch().max(kernels[0]).max(kernels[1])
    }

    fn run_block(&self, io: &Io, rows: &Range<usize>, space: *mut u8) -> Result<()> {
        let from = |step: isize| step * rows.start as isize;
        let made = match self.target {
            Target::Scratch(_) => space,
            Target::Output(o, step) => io.output::<u8>(o).wrapping_offset(from(step)),
        };
        let scratch = space.wrapping_add(self.block());
        // SAFETY: `io` is what this was prepared for; each thread has work space of its own.
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
        self.rows.blocks().parts() * self.space()
    }

    fn bytes(&self) -> usize {
        size_of_val(self) + self.kernels.iter().map(|kernel| kernel.bytes()).sum::<usize>()
    }

    fn run(&self, io: &Io) -> Result<()> {
        self.rows.blocks().each(|part, rows| {
            self.run_block(io, rows, io.scratch::<u8>().wrapping_add(part * self.space()))
        })
    }

    fn check(&self, io: &Io) -> Result<()> {
        self.kernels[0].check(io)
    }
}
