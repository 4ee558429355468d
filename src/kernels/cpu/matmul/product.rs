//! Matrix products: by oneDNN or by portable tiles; large ones are computed one block at a time, of
//! rows or of a batch's matrices.
#![allow(unsafe_code)]

mod packed;
mod sizes;

use std::sync::Arc;

use crate::dtype::DType;
use crate::error::Result;
use crate::kernels::cpu::matmul::matrices::Matrices;
use crate::kernels::cpu::matmul::{portable_gemm, row};
use crate::kernels::cpu::region::blocks::Blocks;
use crate::kernels::cpu::region::row_blocks::{self, RowBlocks, Starts, row_bytes};
use crate::kernels::cpu::{elementwise, onednn};
use crate::kernels::{Kernel, Packing, Width, kernel};
use crate::ops::binary::{Binary, BinaryFn};
use crate::ops::{Meta, product};

/// Up to this many multiplications a oneDNN primitive does not pay off: calling it takes a
/// microsecond, and it holds 70 KiB.
pub(super) const TINY: u64 = 192 << 10;

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
    let io = [&a, &b, &y];
    match a.strides[..] {
        [down, across] if across != 1 && down == 1 && !is_outer(io) => packed::prepare(io),
        _ => whole(io, None),
    }
}

/// A product that a library computes, by the team or on the calling thread alone.
fn whole(io: [&Meta; 3], team: Option<Width>) -> Result<Arc<dyn Kernel>> {
    let ([a, _, y], width) = (io, team.unwrap_or(Width::ONE));
    if a.shape.last() == Some(&0) || y.numel() == 0 {
        return Ok(zeros(y.bytes()));
    }
    if is_outer(io) {
        return Ok(elementwise::binary(&Binary { f: BinaryFn::Mul }, &io, width));
    }
    if is_own(io) {
        return portable_gemm::matmul(&io, width);
    }
    match onednn::matmul::matmul(&io, team)? {
        Some(steps) => Ok(Arc::new(steps)),
        None => portable_gemm::matmul(&io, width),
    }
}

/// Whether our own loops are at least as fast as a library's: for products that are small enough for
/// the portable tiles, and for those of a row or a column.
pub fn is_own(io: [&Meta; 3]) -> bool {
    let [a, _, y] = io;
    let is_tiny = product(&[y.numel(), a.shape[a.shape.rank() - 1]]) <= TINY;
    a.dtype == DType::Float32 && (is_tiny || row::fits(&Matrices::new(io)))
}

/// Whether a product is of columns and rows, whose elements are multiplied and not added.
fn is_outer([a, ..]: [&Meta; 3]) -> bool {
    a.dtype.is_float() && a.shape.last() == Some(&1)
}

/// The two parts of a product that a library computes as a whole.
///
/// # Errors
/// [`crate::Error::Library`].
pub fn packing(io: [&Meta; 3], width: Width) -> Result<Option<Packing>> {
    if io.iter().any(|meta| meta.numel() == 0) || is_split(io) || is_own(io) || is_outer(io) {
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
