//! Matrix products: by oneDNN or by our own tiles, and large ones a block of rows after the other.
#![allow(unsafe_code)]

use std::sync::Arc;

use super::blocks::Blocks;
use super::row_blocks::{self, RowBlocks, first_rows, row_bytes};
use super::{onednn, portable_gemm};
use crate::device::ALIGNMENT;
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::copy::Cast;
use crate::ops::{Family, Io, Kernel, Meta, Packing, Width, kernel};

/// Multiplications up to which a primitive of oneDNN, whose call takes a microsecond and which
/// takes 70 KiB, brings nothing.
const TINY: usize = 192 << 10;
/// The depth above which a block's factors leave the cache.
const DEEPEST: usize = 512;

/// How large blocks are.
struct Sizes {
    /// Bytes of the product below which it stays whole.
    smallest: usize,
    /// Bytes of a block, more or less.
    block: usize,
    /// Rows below which packing the right factor for each block would show.
    fewest: usize,
}

/// With a transposed left factor, as gradients of weights have it, libraries are fast on a few rows
/// of it that lie side by side: two blocks fit into the second cache beside what they are made of.
const TRANSPOSED: Sizes = Sizes { smallest: 192 << 10, block: 32 << 10, fewest: 32 };
/// Other products stay in the cache as a whole until they are larger.
const PLAIN: Sizes = Sizes { smallest: (1 << 20) + 1, block: 512 << 10, fewest: 256 };
/// A block that is larger than this leaves the cache.
const LARGEST_BLOCK: usize = 1 << 20;
/// Blocks have a multiple of so many rows, but for the last.
const GRAIN: usize = 8;

/// Left factor, right factor and product as matrices, where the rows of a batch lie below one
/// another; None where they do not.
fn matrices([a, b, y]: [&Meta; 3]) -> Option<[Meta; 3]> {
    let [rows_a, rows_y] = [a, y].map(|meta| meta.shape.len() - 1);
    let is_one = b.shape.rank() == 2 && a.shape[..rows_a] == y.shape[..rows_y];
    if is_one { Some([below(a)?, b.clone(), below(y)?]) } else { None }
}

/// The matrices of a batch as one.
fn below(meta: &Meta) -> Option<Meta> {
    let columns = meta.shape.rank() - 1;
    if columns == 1 {
        return Some(meta.clone());
    }
    let is_row_major = meta.is_contiguous();
    let rows = meta.shape[..columns].iter().product();
    is_row_major.then(|| Meta::new(meta.dtype, [rows, meta.shape[columns]]))
}

/// How many rows a block of a product of matrices has, which the metas alone decide.
fn block([a, _, y]: [&Meta; 3]) -> usize {
    let rows = y.shape[0];
    let is_transposed = a.strides[0] == 1 && a.strides[1] > 1;
    let is_plain = a.strides[1] == 1;
    let sizes = if is_transposed { TRANSPOSED } else { PLAIN };
    let is_known = is_transposed || is_plain;
    if !is_known || a.shape[1] > DEEPEST || y.bytes() < sizes.smallest {
        return rows;
    }
    let wanted = (sizes.block * rows / y.bytes()).max(sizes.fewest);
    // An even number of blocks, so that two threads have equal parts.
    let count = rows.div_ceil(2 * wanted) * 2;
    let block = rows.div_ceil(count).next_multiple_of(GRAIN).min(rows);
    if block * (y.bytes() / rows) > LARGEST_BLOCK { rows } else { block }
}

/// Whether a product `y = a b` of `io` = a, b, y is made in blocks.
pub fn is_split(io: [&Meta; 3]) -> bool {
    matrices(io).is_some_and(|[a, b, y]| block([&a, &b, &y]) < y.shape[0])
}

/// The product `y = a b` of `io` = a, b, y in blocks of its rows; None where it is made as a whole.
///
/// # Errors
/// [`crate::Error::Library`].
pub fn in_blocks(io: [&Meta; 3], width: Width) -> Result<Option<RowBlocks>> {
    let Some([a, b, y]) = matrices(io) else { return Ok(None) };
    let block = block([&a, &b, &y]);
    if block == y.shape[0] {
        return Ok(None);
    }
    let blocks = Blocks::new(y.shape[0], block, width);
    let make = |rows| by_rows([&a, &b, &y], rows);
    RowBlocks::new(blocks, smallvec::smallvec![row_bytes(&a, 0), 0], make).map(Some)
}

/// What makes so many rows of a product, on one thread.
fn by_rows([a, b, y]: [&Meta; 3], rows: usize) -> Result<Arc<dyn Kernel>> {
    let (a, y) = (first_rows(a, 0, rows), first_rows(y, 0, rows));
    if a.strides[1] == 1 {
        return whole([&a, b, &y], Width::ONE);
    }
    let packed = Meta { strides: [1, rows as isize][..].into(), ..a.clone() };
    Ok(Arc::new(Packed {
        bytes: packed.bytes().next_multiple_of(ALIGNMENT),
        pack: Cast { dtype: a.dtype }.cpu(&[&a, &packed], Width::ONE)?,
        multiply: whole([&packed, b, &y], Width::ONE)?,
    }))
}

/// A product whose left factor is first copied side by side.
struct Packed {
    pack: Arc<dyn Kernel>,
    /// Bytes of the copy.
    bytes: usize,
    multiply: Arc<dyn Kernel>,
}

impl Kernel for Packed {
    fn scratch(&self) -> usize {
        self.bytes + self.multiply.scratch().max(self.pack.scratch())
    }

    fn run(&self, io: &Io) -> Result<()> {
        let (packed, rest) = (io.scratch::<u8>(), io.scratch::<u8>().wrapping_add(self.bytes));
        let factors = [packed.cast_const(), io.input(1)];
        // SAFETY: `io` is what this was prepared for, its work space as large as asked for.
        unsafe {
            self.pack.run(&Io::new(&[io.input(0)], &[packed], rest))?;
            self.multiply.run(&Io::new(&factors, &[io.output(0)], rest))
        }
    }
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

/// Whether the product is so small that our own tiles make it.
pub fn is_tiny([a, _, y]: [&Meta; 3]) -> bool {
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

/// The product in blocks that are written where they belong, or as a whole.
///
/// # Errors
/// [`crate::Error::Library`].
pub fn matmul(io: [&Meta; 3], width: Width) -> Result<Arc<dyn Kernel>> {
    let row = row_bytes(io[2], io[2].shape.rank() - 2);
    match in_blocks(io, width)? {
        Some(rows) => Ok(row_blocks::in_place(rows, row)),
        None => whole(io, width),
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
