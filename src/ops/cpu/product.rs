//! Matrix products: by oneDNN or by our own tiles, and large ones a block of rows, or of matrices of
//! a batch, after the other.
#![allow(unsafe_code)]

mod packed;
mod sizes;

use std::sync::Arc;

use super::blocks::Blocks;
use super::matrices::Matrices;
use super::row_blocks::{self, RowBlocks, Starts, row_bytes};
use super::{onednn, portable_gemm};
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::{Kernel, Meta, Packing, Width, kernel};

/// Multiplications up to which a primitive of oneDNN, whose call takes a microsecond and which
/// takes 70 KiB, brings nothing.
const TINY: usize = 192 << 10;
/// Whether a product `y = a b` of `io` = a, b, y is made in blocks.
pub fn is_split(io: [&Meta; 3]) -> bool {
    let all = Matrices::new(io);
    sizes::block(&all) < all.rows()
}

/// The product `y = a b` of `io` = a, b, y in blocks of its rows, which are those of all its
/// matrices one below another; None where it is made as a whole.
///
/// # Errors
/// [`crate::Error::Library`].
pub fn in_blocks(io: [&Meta; 3], width: Width) -> Result<Option<RowBlocks>> {
    let all = Matrices::new(io);
    let (rows, block) = (all.rows(), sizes::block(&all));
    if block == rows {
        return Ok(None);
    }
    let blocks = Blocks::new(rows, block, width);
    RowBlocks::new(blocks, starts(&all), |rows| part(all.first(rows).metas())).map(Some)
}

/// Where the factors of a block start.
fn starts(all: &Matrices) -> Starts {
    let bytes = |elements: isize| elements * all.dtype.size() as isize;
    let rows = (all.size[0], smallvec::smallvec![bytes(all.steps[0][0]), 0]);
    let axes = all.batch.iter().rev().map(|axis| {
        let [a, b, _] = axis.steps;
        (axis.extent, smallvec::smallvec![bytes(a), bytes(b)])
    });
    Starts::nested(std::iter::once(rows).chain(axes))
}

/// What makes a block, on one thread.
fn part([a, b, y]: [Meta; 3]) -> Result<Arc<dyn Kernel>> {
    match a.strides[..] {
        [down, across] if across != 1 && down == 1 => packed::prepare([&a, &b, &y]),
        _ => whole([&a, &b, &y], Width::ONE),
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

#[cfg(test)]
mod tests;
