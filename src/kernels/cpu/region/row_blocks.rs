//! Results that are computed one block of rows at a time: the next kernel finds the rows in the
//! cache, and they need not all exist at once.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::device::ALIGNMENT;
use crate::error::Result;
use crate::kernels::cpu::region::blocks::Blocks;
use crate::kernels::{Io, Kernel, Width};
use crate::ops::Meta;

/// Bytes from row to row of several tensors; 0 where every row needs the whole tensor.
pub type Steps = SmallVec<[isize; 8]>;

/// The offsets of a result's inputs, by row.
pub struct Starts {
    /// From the innermost: the extent of each axis, and the bytes of a step along it, by input.
    axes: SmallVec<[(usize, Steps); 2]>,
}

impl Starts {
    /// Rows along one axis, with the bytes from row to row.
    pub fn along(steps: Steps) -> Self {
        Starts { axes: smallvec::smallvec![(usize::MAX, steps)] }
    }

    /// Rows along several axes, innermost first.
    pub fn nested(axes: impl Iterator<Item = (usize, Steps)>) -> Self {
        Starts { axes: axes.collect() }
    }

    /// The number of inputs.
    fn inputs(&self) -> usize {
        self.axes[0].1.len()
    }

    /// The offset in bytes of an input for this row.
    fn offset(&self, input: usize, mut row: usize) -> isize {
        let mut offset = 0;
        for (extent, steps) in &self.axes {
            offset += (row % extent) as isize * steps[input];
            row /= extent;
        }
        offset
    }
}

/// One result in blocks of rows, each computed by one thread, or in a single block computed by all.
pub struct RowBlocks {
    blocks: Blocks,
    starts: Starts,
    /// The kernels for a block, and for the last one.
    makers: [Arc<dyn Kernel>; 2],
}

impl RowBlocks {
    /// Blocks with kernels prepared by `make` for their numbers of rows.
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

    /// A single block, computed by a kernel with `inputs` inputs.
    pub fn whole(kernel: Arc<dyn Kernel>, inputs: usize) -> Self {
        let blocks = Blocks::new(1, 1, Width::ONE);
        let starts = Starts::along(smallvec::smallvec![0; inputs]);
        RowBlocks { blocks, starts, makers: [kernel.clone(), kernel] }
    }

    /// The blocks.
    pub fn blocks(&self) -> &Blocks {
        &self.blocks
    }

    /// The number of inputs.
    pub fn inputs(&self) -> usize {
        self.starts.inputs()
    }

    /// Bytes of scratch memory per thread, a multiple of [`ALIGNMENT`].
    pub fn scratch(&self) -> usize {
        let bytes = self.makers.each_ref().map(|maker| maker.scratch());
        bytes[0].max(bytes[1]).next_multiple_of(ALIGNMENT)
    }

    /// The most threads that compute it.
    pub fn threads(&self) -> usize {
        if self.blocks.is_split() { self.blocks.seats() } else { self.makers[0].threads() }
    }

    /// Writes some rows to `to`; `rows` comes from [`Blocks::each`], and `input` returns the
    /// addresses of the inputs.
    ///
    /// # Errors
    /// [`crate::Error::Library`].
    ///
    /// # Safety
    /// The inputs are those that the result was prepared for, `to` is valid for these rows,
    /// `scratch` for [`RowBlocks::scratch`] bytes, and nothing else accesses what is written.
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

/// The first rows of a tensor, in place; rows are along this axis.
pub fn first_rows(meta: &Meta, axis: usize, rows: usize) -> Meta {
    let mut meta = meta.clone();
    meta.shape[axis] = rows;
    meta
}

/// Bytes from row to row; rows are along this axis.
pub fn row_bytes(meta: &Meta, axis: usize) -> isize {
    meta.strides[axis] * meta.dtype.size() as isize
}

/// The kernel that writes all blocks to their final place, with `step` bytes from row to row.
pub fn in_place(rows: RowBlocks, step: isize) -> Arc<dyn Kernel> {
    Arc::new(InPlace { rows, step })
}

struct InPlace {
    rows: RowBlocks,
    step: isize,
}

impl Kernel for InPlace {
    fn scratch(&self) -> usize {
        self.rows.blocks.seats() * self.rows.scratch()
    }

    fn threads(&self) -> usize {
        self.rows.threads()
    }

    fn run(&self, io: &Io) -> Result<()> {
        self.rows.blocks.each(|seat, rows| {
            let to = io.output::<u8>(0).wrapping_offset(rows.start as isize * self.step);
            let scratch = io.scratch::<u8>().wrapping_add(seat * self.rows.scratch());
            // SAFETY: `io` is what this was prepared for; each seat has its own scratch.
            unsafe { self.rows.make(rows, |i| io.input(i), to, scratch) }
        })
    }
}
