//! Matrix products: by oneDNN or by portable tiles; large ones are computed one block at a time, of
//! rows or of a batch's matrices.
#![allow(unsafe_code)]

mod packed;
mod sizes;

use std::sync::Arc;

use crate::dtype::DType;
use crate::error::Result;
use crate::kernels::cpu::matmul::matrices::Matrices;
use crate::kernels::cpu::matmul::portable_gemm;
use crate::kernels::cpu::onednn;
use crate::kernels::cpu::region::blocks::Blocks;
use crate::kernels::cpu::region::row_blocks::{self, RowBlocks, Starts, row_bytes};
use crate::kernels::{Kernel, Packing, Width, kernel};
use crate::ops::Meta;

/// Up to this many multiplications a oneDNN primitive does not pay off: calling it takes a
/// microsecond, and it holds 70 KiB.
pub(super) const TINY: usize = 192 << 10;
/// Whether a product `y = a b` of `io` = a, b, y is computed in blocks.
pub fn is_split(io: [&Meta; 3]) -> bool {
    let all = Matrices::new(io);
    sizes::block(&all) < all.rows()
}

/// The product `y = a b` of `io` = a, b, y in blocks of the rows of all its matrices, stacked; None
/// where it is computed as a whole.
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

/// The offsets of a block's factors.
fn starts(all: &Matrices) -> Starts {
    let bytes = |elements: isize| elements * all.dtype.size() as isize;
    let rows = (all.size[0], smallvec::smallvec![bytes(all.steps[0][0]), 0]);
    let axes = all.batch.iter().rev().map(|axis| {
        let [a, b, _] = axis.steps;
        (axis.extent, smallvec::smallvec![bytes(a), bytes(b)])
    });
    Starts::nested(std::iter::once(rows).chain(axes))
}

/// The kernel that computes a block, on one thread.
fn part([a, b, y]: [Meta; 3]) -> Result<Arc<dyn Kernel>> {
    match a.strides[..] {
        [down, across] if across != 1 && down == 1 => packed::prepare([&a, &b, &y]),
        _ => whole([&a, &b, &y], None),
    }
}

/// A product that a library computes, by the team or on the calling thread alone.
fn whole(io: [&Meta; 3], team: Option<Width>) -> Result<Arc<dyn Kernel>> {
    let ([a, _, y], width) = (io, team.unwrap_or(Width::ONE));
    if a.shape.last() == Some(&0) || y.numel() == 0 {
        return Ok(zeros(y.bytes()));
    }
    if is_tiny(io) {
        return portable_gemm::matmul(&io, width);
    }
    match onednn::matmul::matmul(&io, team)? {
        Some(steps) => Ok(Arc::new(steps)),
        None => portable_gemm::matmul(&io, width),
    }
}

/// Whether the product is small enough for the portable tiles.
pub fn is_tiny([a, _, y]: [&Meta; 3]) -> bool {
    a.dtype == DType::Float32 && y.numel() * a.shape[a.shape.rank() - 1] <= TINY
}

/// The two parts of a product that a library computes as a whole.
///
/// # Errors
/// [`crate::Error::Library`].
pub fn packing(io: [&Meta; 3], width: Width) -> Result<Option<Packing>> {
    if io.iter().any(|meta| meta.numel() == 0) || is_split(io) || is_tiny(io) {
        return Ok(None);
    }
    Ok(onednn::matmul::packed(&io, Some(width))?.and_then(|steps| steps.packing()))
}

/// The product in blocks written to their final place, or as a whole.
///
/// # Errors
/// [`crate::Error::Library`].
pub fn matmul(io: [&Meta; 3], width: Width) -> Result<Arc<dyn Kernel>> {
    let row = row_bytes(io[2], io[2].shape.rank() - 2);
    match in_blocks(io, width)? {
        Some(rows) => Ok(row_blocks::in_place(rows, row)),
        None => whole(io, Some(width)),
    }
}

/// Zeroes `bytes` contiguous bytes: the zero of every type is all zero bits.
fn zeros(bytes: usize) -> Arc<dyn Kernel> {
    kernel(0, move |io| {
        // SAFETY: the output is contiguous.
        unsafe { io.write::<u8>(0, bytes) }.fill(0);
        Ok(())
    })
}

#[cfg(test)]
mod tests;
