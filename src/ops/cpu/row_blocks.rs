//! Results that are made a block of rows after the other: what is done with the rows next finds
//! them in the cache, and need not have all of them at once.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use super::blocks::Blocks;
use crate::device::ALIGNMENT;
use crate::error::Result;
use crate::ops::{Io, Kernel, Meta, Width};

/// Bytes from a row to the next, of several tensors; 0 where every row takes all of it.
pub type Steps = SmallVec<[isize; 8]>;

/// Where the inputs of a result start for one of its rows.
pub struct Starts {
    /// From the innermost: how many steps there are along an axis, and the bytes of one by input.
    axes: SmallVec<[(usize, Steps); 2]>,
}

impl Starts {
    /// Rows along one axis, with the steps from each to the next.
    pub fn along(steps: Steps) -> Self {
        Starts { axes: smallvec::smallvec![(usize::MAX, steps)] }
    }

    /// Rows along several axes, from the innermost.
    pub fn nested(axes: impl Iterator<Item = (usize, Steps)>) -> Self {
        Starts { axes: axes.collect() }
    }

    /// How many inputs there are.
    fn inputs(&self) -> usize {
        self.axes[0].1.len()
    }

    /// Bytes from where an input starts to where it does for this row.
    fn offset(&self, input: usize, mut row: usize) -> isize {
        let mut offset = 0;
        for (extent, steps) in &self.axes {
            offset += (row % extent) as isize * steps[input];
            row /= extent;
        }
        offset
    }
}

/// One result in blocks of rows, each made by one thread; or in one block made by all of them.
pub struct RowBlocks {
    blocks: Blocks,
    starts: Starts,
    /// What makes a block, and the last one.
    makers: [Arc<dyn Kernel>; 2],
}

impl RowBlocks {
    /// Blocks that `make` prepares a kernel for, by their numbers of rows.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn new(
        blocks: Blocks,
        starts: Starts,
        make: impl Fn(usize) -> Result<Arc<dyn Kernel>>,
    ) -> Result<Self> {
        let makers = blocks.for_both(make)?;
        Ok(RowBlocks { blocks, starts, makers })
    }

    /// One block, made by a kernel of so many inputs.
    pub fn whole(kernel: Arc<dyn Kernel>, inputs: usize) -> Self {
        let blocks = Blocks::new(1, 1, Width::ONE);
        let starts = Starts::along(smallvec::smallvec![0; inputs]);
        RowBlocks { blocks, starts, makers: [kernel.clone(), kernel] }
    }

    /// The blocks.
    pub fn blocks(&self) -> &Blocks {
        &self.blocks
    }

    /// How many inputs there are.
    pub fn inputs(&self) -> usize {
        self.starts.inputs()
    }

    /// Work space of one thread, a multiple of [`ALIGNMENT`].
    pub fn scratch(&self) -> usize {
        let bytes = self.makers.each_ref().map(|maker| maker.scratch());
        bytes[0].max(bytes[1]).next_multiple_of(ALIGNMENT)
    }

    /// Writes some rows to `to`; `rows` is what [`Blocks::each`] said, and `input` tells where the
    /// inputs lie.
    ///
    /// # Errors
    /// [`crate::Error::Library`].
    ///
    /// # Safety
    /// The inputs are those that the result was prepared for, `to` is valid for these rows,
    /// `scratch` for [`RowBlocks::scratch`] bytes, and nobody else touches what is written.
    pub unsafe fn make(
        &self,
        rows: &Range<usize>,
        input: impl Fn(usize) -> *const u8,
        to: *mut u8,
        scratch: *mut u8,
    ) -> Result<()> {
        let from = |i: usize| input(i).wrapping_offset(self.starts.offset(i, rows.start));
        let inputs: SmallVec<[*const u8; 4]> = (0..self.inputs()).map(from).collect();
        let outputs = [to];
        // SAFETY: by the caller's promise.
        self.blocks.of(&self.makers, rows).run(&unsafe { Io::new(&inputs, &outputs, scratch) })
    }
}

/// The first rows of a tensor, where they lie; rows are along this axis.
pub fn first_rows(meta: &Meta, axis: usize, rows: usize) -> Meta {
    let mut meta = meta.clone();
    meta.shape[axis] = rows;
    meta
}

/// Bytes from a row to the next; rows are along this axis.
pub fn row_bytes(meta: &Meta, axis: usize) -> isize {
    meta.strides[axis] * meta.dtype.size() as isize
}

/// The kernel that writes all blocks where they belong, `step` bytes from a row to the next.
pub fn in_place(rows: RowBlocks, step: isize) -> Arc<dyn Kernel> {
    Arc::new(InPlace { rows, step })
}

struct InPlace {
    rows: RowBlocks,
    step: isize,
}

impl Kernel for InPlace {
    fn scratch(&self) -> usize {
        self.rows.blocks.parts() * self.rows.scratch()
    }

    fn run(&self, io: &Io) -> Result<()> {
        self.rows.blocks.each(|part, rows| {
            let to = io.output::<u8>(0).wrapping_offset(rows.start as isize * self.step);
            let scratch = io.scratch::<u8>().wrapping_add(part * self.rows.scratch());
            // SAFETY: `io` is what this was prepared for; each part has work space of its own.
            unsafe { self.rows.make(rows, |i| io.input(i), to, scratch) }
        })
    }
}
