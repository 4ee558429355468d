//! Convolutions: by oneDNN or by portable loops; batches of many small images are processed a few
//! images at a time.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::device::onednn::{Gate, Propagation};
use crate::error::Result;
use crate::kernels::cpu::conv::portable_conv;
use crate::kernels::cpu::onednn;
use crate::kernels::cpu::onednn::Steps;
use crate::kernels::cpu::region::blocks::Blocks;
use crate::kernels::cpu::region::row_blocks::{self, RowBlocks, Starts, first_rows, row_bytes};
use crate::kernels::{Kernel, Packing, Width};
use crate::ops::Meta;
use crate::ops::geometry::Geometry;

/// Results of up to this many bytes stay in the cache as a whole.
const SMALLEST: usize = 1 << 20;
/// Approximate bytes of a block of images.
const BLOCK: usize = 512 << 10;
/// An image with more bytes than this does not stay in the cache.
const LARGEST_IMAGE: usize = 512 << 10;
/// Above this many bytes of weights, packing them for each block would be noticeable.
const LARGEST_WEIGHT: usize = 64 << 10;

/// The kernel of a convolution, or of one of its gradients; `pass` determines `io`.
///
/// # Errors
/// [`crate::Error::Library`]; [`crate::Error::DType`] for types that are not floats.
pub fn prepare(
    pass: Propagation,
    geometry: &Geometry,
    io: &[&Meta],
    width: Width,
) -> Result<Arc<dyn Kernel>> {
    match in_blocks(pass, geometry, io, width)? {
        Some(images) => Ok(row_blocks::in_place(images, row_bytes(io[io.len() - 1], 0))),
        None => whole(pass, geometry, io, Some(width)),
    }
}

/// The number of images of the result per block, which depends on the metas alone.
fn block(pass: Propagation, io: &[&Meta]) -> usize {
    let (y, w) = (io[io.len() - 1], io[1]);
    let images = y.shape[0];
    if pass == Propagation::GradWeight || y.bytes() <= SMALLEST || w.bytes() > LARGEST_WEIGHT {
        return images;
    }
    let image = y.bytes() / images;
    if image > LARGEST_IMAGE {
        return images;
    }
    // An even number of blocks, so that two threads get equal parts.
    let count = images.div_ceil(2 * (BLOCK / image).max(1)) * 2;
    images.div_ceil(count)
}

/// Whether the result is computed in blocks of images.
pub fn is_split(pass: Propagation, io: &[&Meta]) -> bool {
    block(pass, io) < io[io.len() - 1].shape[0]
}

/// The convolution in blocks of images; None where it is computed as a whole.
///
/// # Errors
/// As [`prepare`].
pub fn in_blocks(
    pass: Propagation,
    geometry: &Geometry,
    io: &[&Meta],
    width: Width,
) -> Result<Option<RowBlocks>> {
    if !is_split(pass, io) {
        return Ok(None);
    }
    let last = io.len() - 1;
    // The weight and the bias are common to all images.
    let has_images = |i: usize| i == 0 || i == last;
    let step = |i: usize| if has_images(i) { row_bytes(io[i], 0) } else { 0 };
    let make = |images: usize| {
        let cut =
            |i: usize| if has_images(i) { first_rows(io[i], 0, images) } else { io[i].clone() };
        let io: SmallVec<[Meta; 4]> = (0..=last).map(cut).collect();
        whole(pass, geometry, &io.iter().collect::<SmallVec<[&Meta; 4]>>(), None)
    };
    let blocks = Blocks::new(io[last].shape[0], block(pass, io), width);
    RowBlocks::new(blocks, Starts::along((0..last).map(step).collect()), make).map(Some)
}

/// A convolution that a library computes, by the team or on the calling thread alone.
fn whole(
    pass: Propagation,
    geometry: &Geometry,
    io: &[&Meta],
    team: Option<Width>,
) -> Result<Arc<dyn Kernel>> {
    if let Some(steps) = by_onednn(pass, geometry, io, team)? {
        return Ok(Arc::new(steps));
    }
    let width = team.unwrap_or(Width::ONE);
    match pass {
        Propagation::Forward => portable_conv::forward(geometry, io, width),
        Propagation::GradInput => portable_conv::grad_input(geometry, io, width),
        Propagation::GradWeight => portable_conv::grad_weight(geometry, io, width),
    }
}

/// oneDNN's kernel, if it has a fast one. Empty tensors are left to the portable loops.
fn by_onednn(
    pass: Propagation,
    geometry: &Geometry,
    io: &[&Meta],
    team: Option<Width>,
) -> Result<Option<Steps>> {
    if io.iter().any(|meta| meta.numel() == 0) {
        return Ok(None);
    }
    onednn::conv::prepare(None, pass, geometry, io, team)
}

/// A convolution whose result is multiplied by a function of it while it is in registers; None where
/// no library does that.
///
/// # Errors
/// [`crate::Error::Library`].
pub fn gated(gate: Gate, geometry: &Geometry, io: &[&Meta], width: Width) -> Result<Option<Steps>> {
    if is_split(Propagation::Forward, io) || io.iter().any(|meta| meta.numel() == 0) {
        return Ok(None);
    }
    onednn::conv::prepare(Some(gate), Propagation::Forward, geometry, io, Some(width))
}

/// The two parts of a convolution that a library computes as a whole.
///
/// # Errors
/// [`crate::Error::Library`].
pub fn packing(
    pass: Propagation,
    geometry: &Geometry,
    io: &[&Meta],
    width: Width,
) -> Result<Option<Packing>> {
    if is_split(pass, io) {
        return Ok(None);
    }
    Ok(by_onednn(pass, geometry, io, Some(width))?.and_then(|steps| steps.packing()))
}
