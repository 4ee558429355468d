//! Products of a transposed matrix, such as gradients of weights, a block of rows after the other:
//! what is done with the rows next finds them in the cache, and need not have all of them at once.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;

use super::blocks::Blocks;
use super::{onednn, portable_gemm};
use crate::device::ALIGNMENT;
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::copy::Cast;
use crate::ops::{Family, Io, Kernel, Meta, Packing, Width, kernel};

/// Multiplications up to which a primitive of oneDNN, whose call takes a microsecond and which
/// takes 70 KiB, brings nothing.
const TINY: usize = 192 << 10;
/// Bytes of the product below which it stays whole.
const SMALLEST: usize = 192 << 10;
/// Bytes of a block, more or less: two fit into the second cache beside what they are made of.
const BLOCK: usize = 32 << 10;
/// Rows below which packing the right factor for each block would show.
const FEWEST: usize = 32;
/// The depth above which a block's factors leave the cache.
const DEEPEST: usize = 512;
/// Blocks have a multiple of so many rows, but for the last.
const GRAIN: usize = 8;

/// A product in blocks of rows, each made by one thread; or in one block made by all of them.
pub struct RowBlocks {
    blocks: Blocks,
    /// Bytes from a row of the left factor to the next.
    step: isize,
    /// What makes a block, and the last one.
    makers: [Maker; 2],
}

/// What makes a block of the product.
#[derive(Clone)]
struct Maker {
    /// Copies the block's rows of the left factor side by side, where the product is made in
    /// blocks: only then have libraries a fast way.
    pack: Option<Arc<dyn Kernel>>,
    /// Bytes of the copy.
    bytes: usize,
    multiply: Arc<dyn Kernel>,
}

impl Maker {
    fn new([a, b, y]: [&Meta; 3], rows: usize, width: Width) -> Result<Self> {
        let y = first_rows(y, rows);
        if rows == a.shape[a.shape.rank() - 2] {
            return Ok(Maker { pack: None, bytes: 0, multiply: whole([a, b, &y], width)? });
        }
        let from = first_rows(a, rows);
        let packed = Meta { strides: [1, rows as isize][..].into(), ..from.clone() };
        let copy = Cast { dtype: a.dtype }.cpu(&[&from, &packed], width)?;
        let bytes = packed.bytes().next_multiple_of(ALIGNMENT);
        Ok(Maker { pack: Some(copy), bytes, multiply: whole([&packed, b, &y], width)? })
    }

    fn scratch(&self) -> usize {
        let copying = self.pack.as_ref().map_or(0, |pack| pack.scratch());
        self.bytes + self.multiply.scratch().max(copying)
    }

    /// # Safety
    /// The addresses are valid for what it was made for, `scratch` for [`Maker::scratch`] bytes,
    /// and nobody else touches what is written.
    unsafe fn run(&self, [a, b]: [*const u8; 2], to: *mut u8, scratch: *mut u8) -> Result<()> {
        let rest = scratch.wrapping_add(self.bytes);
        let mut left = a;
        if let Some(pack) = &self.pack {
            // SAFETY: by the caller's promise.
            unsafe { call(&**pack, [a], scratch, rest)? };
            left = scratch;
        }
        // SAFETY: as above.
        unsafe { call(&*self.multiply, [left, b], to, rest) }
    }
}

/// How many rows a block of `io` = a, b, y has, which the metas alone decide.
fn block(io: [&Meta; 3]) -> usize {
    let [a, _, y] = io;
    let rank = y.shape.rank();
    let (rows, depth) = (y.shape[rank - 2], a.shape[a.shape.rank() - 1]);
    let is_transposed = a.shape.rank() == 2 && a.strides[0] == 1 && a.strides[1] > 1;
    if rank > 2 || !is_transposed || depth > DEEPEST || y.bytes() < SMALLEST {
        return rows;
    }
    let wanted = (BLOCK * rows / y.bytes()).max(FEWEST);
    // An even number of blocks, so that two threads have equal parts.
    let count = rows.div_ceil(2 * wanted) * 2;
    rows.div_ceil(count).next_multiple_of(GRAIN).min(rows)
}

/// Whether a product is made in blocks.
pub fn is_split(io: [&Meta; 3]) -> bool {
    block(io) < io[2].shape[io[2].shape.rank() - 2]
}

impl RowBlocks {
    /// Prepares the product `y = a b` of `io` = a, b, y.
    ///
    /// # Errors
    /// [`crate::Error::Library`].
    pub fn new(io: [&Meta; 3], width: Width) -> Result<Self> {
        let rows = io[2].shape[io[2].shape.rank() - 2];
        let blocks = Blocks::new(rows, block(io), width);
        let width = if blocks.is_split() { Width::ONE } else { width };
        let makers = blocks.for_both(|rows| Maker::new(io, rows, width))?;
        Ok(RowBlocks { blocks, step: row_bytes(io[0]), makers })
    }

    /// The blocks.
    pub fn blocks(&self) -> &Blocks {
        &self.blocks
    }

    /// Work space of one thread, a multiple of [`ALIGNMENT`].
    pub fn scratch(&self) -> usize {
        let bytes = self.makers.each_ref().map(Maker::scratch);
        bytes[0].max(bytes[1]).next_multiple_of(ALIGNMENT)
    }

    /// Writes some rows of the product of two inputs to `to`; `rows` is what [`Blocks::each`] said.
    ///
    /// # Errors
    /// [`crate::Error::Library`].
    ///
    /// # Safety
    /// The inputs are those that the product was prepared for, `to` is valid for these rows,
    /// `scratch` for [`RowBlocks::scratch`] bytes, and nobody else touches what is written.
    pub unsafe fn multiply(
        &self,
        rows: &Range<usize>,
        io: &Io,
        [a, b]: [usize; 2],
        to: *mut u8,
        scratch: *mut u8,
    ) -> Result<()> {
        let left = io.input::<u8>(a).wrapping_offset(rows.start as isize * self.step);
        // SAFETY: by the caller's promise.
        unsafe { self.blocks.of(&self.makers, rows).run([left, io.input(b)], to, scratch) }
    }
}

/// Runs a kernel of one output.
///
/// # Safety
/// As [`Io::new`].
unsafe fn call<const N: usize>(
    kernel: &dyn Kernel,
    inputs: [*const u8; N],
    output: *mut u8,
    scratch: *mut u8,
) -> Result<()> {
    let outputs = [output];
    // SAFETY: by the caller's promise.
    kernel.run(&unsafe { Io::new(&inputs, &outputs, scratch) })
}

/// A product as one call of a library.
fn whole(io: [&Meta; 3], width: Width) -> Result<Arc<dyn Kernel>> {
    let [a, _, y] = io;
    if a.shape.last() == Some(&0) || y.numel() == 0 {
        return Ok(zeros(y.bytes()));
    }
    if is_tiny(io) {
        return portable_gemm::matmul(&io, width);
    }
    match onednn::matmul::matmul(&io, width)? {
        Some(steps) => Ok(Arc::new(steps)),
        None => portable_gemm::matmul(&io, width),
    }
}

/// Whether a library would bring nothing.
fn is_tiny([a, _, y]: [&Meta; 3]) -> bool {
    a.dtype == DType::Float32 && y.numel() * a.shape[a.shape.rank() - 1] <= TINY
}

/// A product that a library makes as a whole, in two parts.
///
/// # Errors
/// [`crate::Error::Library`].
pub fn packing(io: [&Meta; 3], width: Width) -> Result<Option<Packing>> {
    if io.iter().any(|meta| meta.numel() == 0) || is_split(io) || is_tiny(io) {
        return Ok(None);
    }
    Ok(onednn::matmul::packed(&io, width)?.and_then(|steps| steps.packing()))
}

/// The first rows of a tensor, where they lie.
pub fn first_rows(meta: &Meta, rows: usize) -> Meta {
    let mut meta = meta.clone();
    let row = meta.shape.rank() - 2;
    meta.shape[row] = rows;
    meta
}

/// Bytes from a row to the next.
pub fn row_bytes(meta: &Meta) -> isize {
    meta.strides[meta.strides.len() - 2] * meta.dtype.size() as isize
}

/// The product in blocks that are written where they belong, or as a whole.
///
/// # Errors
/// [`crate::Error::Library`].
pub fn matmul(io: [&Meta; 3], width: Width) -> Result<Arc<dyn Kernel>> {
    if !is_split(io) {
        return whole(io, width);
    }
    Ok(Arc::new(Product { step: row_bytes(io[2]), product: RowBlocks::new(io, width)? }))
}

struct Product {
    step: isize,
    product: RowBlocks,
}

impl Kernel for Product {
    fn scratch(&self) -> usize {
        self.product.blocks.parts() * self.product.scratch()
    }

    fn run(&self, io: &Io) -> Result<()> {
        self.product.blocks.each(|part, rows| {
            let to = io.output::<u8>(0).wrapping_offset(rows.start as isize * self.step);
            let scratch = io.scratch::<u8>().wrapping_add(part * self.product.scratch());
            // SAFETY: `io` is what this was prepared for; each part has work space of its own.
            unsafe { self.product.multiply(rows, io, [0, 1], to, scratch) }
        })
    }
}

/// Zeros in `bytes` gapless bytes: all types' zero is all bits zero.
fn zeros(bytes: usize) -> Arc<dyn Kernel> {
    kernel(0, move |io| {
        // SAFETY: the output is gapless.
        unsafe { io.write::<u8>(0, bytes) }.fill(0);
        Ok(())
    })
}
