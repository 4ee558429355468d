//! How a recurrence is computed: blocks of rows, the products of their steps, and the memory of the
//! threads that take them.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::ops::Range;

use super::products::Products;
use super::space;
use crate::error::Result;
use crate::kernels::Io;
use crate::kernels::cpu::region::blocks::Blocks;
use crate::kernels::cpu::simd::wide::Wide;

/// The arrays of a thread, of as many rows as a block has.
pub type Arrays<'a, W> = [&'a mut [W]; 5];

/// See the module's documentation.
pub struct Plan<W> {
    pub blocks: Blocks,
    pub products: Products,
    /// The columns of a thread's arrays.
    pub columns: [usize; 5],
    of: PhantomData<W>,
}

impl<W: Wide> Plan<W> {
    pub fn new(blocks: Blocks, products: Products, columns: [usize; 5]) -> Self {
        Plan { blocks, products, columns, of: PhantomData }
    }

    /// The lengths of a thread's arrays.
    fn lengths(&self) -> [usize; 5] {
        self.columns.map(|columns| columns * self.blocks.sizes()[0])
    }

    /// Bytes of the packed weights, of a thread's arrays, and of a product's scratch memory.
    fn rooms(&self) -> [usize; 3] {
        let arrays = space::bytes::<W>(self.lengths());
        [self.products.packed(), arrays, self.products.scratch()]
    }

    /// Bytes of scratch memory.
    pub fn scratch(&self) -> usize {
        let [packed, arrays, scratch] = self.rooms();
        packed + self.blocks.seats() * (arrays + scratch)
    }

    /// Packs the weights.
    ///
    /// # Errors
    /// [`crate::Error::Library`].
    ///
    /// # Safety
    /// `io` is what the products were prepared for, with [`Plan::scratch`] bytes.
    pub unsafe fn pack(&self, io: &Io) -> Result<()> {
        let (room, [packed, ..]) = (io.scratch::<u8>(), self.rooms());
        // SAFETY: by the caller's promise; packing is done before blocks run.
        unsafe { self.products.pack(io, room, room.wrapping_add(packed)) }
    }

    /// Calls `run` for each block with arrays, a product's scratch memory and the block's rows.
    ///
    /// # Errors
    /// Those of `run`.
    pub fn each(
        &self,
        io: &Io,
        run: impl Fn(Arrays<W>, *mut u8, &Range<usize>) -> Result<()> + Sync,
    ) -> Result<()> {
        let ([packed, arrays, scratch], lengths) = (self.rooms(), self.lengths());
        self.blocks.each(|seat, rows| {
            let at = io.scratch::<u8>().wrapping_add(packed + seat * (arrays + scratch));
            // SAFETY: each thread has its own scratch memory.
            let own = unsafe { space::arrays(at, lengths) };
            run(own, at.wrapping_add(arrays), rows)
        })
    }
}
