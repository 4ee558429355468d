//! A view describes how a tensor is laid out in a block. Reshape, permute, slice and expand make
//! views.

mod meta;

use std::ops::Range;
use std::sync::Arc;

use crate::block::Block;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::shape::{Shape, Strides};
use meta::reshape_strides;
pub use meta::{Meta, Metas, repeats};

/// A tensor's location in a block.
#[derive(Clone, Debug)]
pub struct View {
    /// The memory.
    pub block: Arc<Block>,
    /// Dtype, shape and strides; shared, because views are copied far more often than they are
    /// made.
    pub meta: Arc<Meta>,
    /// The offset of the first element, in elements.
    pub offset: usize,
}

impl View {
    /// A tensor in a new block of its own, without memory. `meta` must be dense.
    pub fn new(device: &Arc<Device>, meta: Meta) -> Self {
        View { block: Block::new(device, meta.bytes()), meta: Arc::new(meta), offset: 0 }
    }

    /// A tensor in a new block of its own, sharing its meta with other tensors.
    pub fn of(device: &Arc<Device>, meta: &Arc<Meta>) -> Self {
        View { block: Block::new(device, meta.bytes()), meta: meta.clone(), offset: 0 }
    }

    /// The bytes of the block that the view may touch.
    pub fn byte_range(&self) -> Range<usize> {
        self.meta.byte_range(self.offset)
    }

    /// Whether the two views may touch the same bytes.
    pub fn overlaps(&self, other: &View) -> bool {
        // Another library may lend the same memory twice, or lend back a block that was lent to it.
        let is_lent = self.block.is_lent() || other.block.is_lent();
        (Arc::ptr_eq(&self.block, &other.block) || is_lent)
            && self.block.shares(self.byte_range(), &other.block, other.byte_range())
    }

    /// Whether both views refer to the same elements in the same order.
    pub fn is_same(&self, other: &View) -> bool {
        Arc::ptr_eq(&self.block, &other.block)
            && self.offset == other.offset
            && self.meta == other.meta
    }

    /// Whether writing the view writes every byte of its block.
    pub fn covers_block(&self) -> bool {
        self.meta.fills(self.offset, self.block.bytes())
    }

    /// The address of the first element. Memory is allocated if need be, and zeroed or initialised
    /// unless this view is about to be overwritten and covers the whole block.
    ///
    /// # Errors
    /// The errors of [`Block::to_touch`].
    pub fn address(&self, write: bool) -> Result<*mut u8> {
        let whole = write && self.covers_block();
        let start = if whole { self.block.to_overwrite()? } else { self.block.to_touch()? };
        Ok(start.as_ptr().wrapping_add(self.offset * self.meta.dtype.size()))
    }

    fn with(&self, shape: Shape, strides: Strides, offset: usize) -> View {
        let meta = Meta { dtype: self.meta.dtype, shape, strides };
        View { block: self.block.clone(), meta: Arc::new(meta), offset }
    }

    /// The same elements, row-major, in another shape; `None` if that needs a copy.
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of elements differs.
    pub fn reshape(&self, shape: &Shape) -> Result<Option<View>> {
        let (from, to) = (self.meta.numel(), shape.checked_numel("reshape")?);
        let want = || format!("a shape of {from} elements, not {shape}");
        crate::ensure!(from == to, Error::shape("reshape", [&self.meta.shape], want()));
        Ok(reshape_strides(&self.meta, shape).map(|s| self.with(shape.clone(), s, self.offset)))
    }

    /// Dimension `i` of the result is dimension `axes[i]` of the view.
    ///
    /// # Errors
    /// [`Error::Value`] if `axes` is not a permutation.
    pub fn permute(&self, axes: &[i64]) -> Result<View> {
        let shape = &self.meta.shape;
        let want = || format!("a permutation of the {} axes", shape.rank());
        let bad = || Error::value("transpose", format!("axes {axes:?}"), want());
        crate::ensure!(axes.len() == shape.rank(), bad());
        let order: Vec<usize> =
            axes.iter().map(|&a| shape.axis("transpose", a)).collect::<Result<_>>()?;
        let mut seen = vec![false; order.len()];
        order.iter().for_each(|&a| seen[a] = true);
        crate::ensure!(seen.iter().all(|&s| s), bad());
        let extents = order.iter().map(|&a| shape[a]).collect();
        Ok(self.with(extents, order.iter().map(|&a| self.meta.strides[a]).collect(), self.offset))
    }

    /// Along each axis, the `count` elements `start`, `start + step`, ...
    ///
    /// # Errors
    /// [`Error::Value`] if an element is out of range.
    pub fn slice(&self, ranges: &[SliceRange]) -> Result<View> {
        let meta = &self.meta;
        crate::ensure!(
            ranges.len() == meta.shape.rank(),
            Error::value("slice", format!("{} ranges", ranges.len()), "one range an axis")
        );
        let mut offset = self.offset as isize;
        let empty = ranges.iter().any(|r| r.count == 0) || meta.numel() == 0;
        for (axis, range) in ranges.iter().enumerate() {
            range.check(meta.shape[axis])?;
            offset += if empty { 0 } else { range.start as isize * meta.strides[axis] };
        }
        // With a single element the step is never used and may be any number.
        let stride = |(r, &s): (&SliceRange, &isize)| if r.count > 1 { r.step * s } else { s };
        let strides = ranges.iter().zip(&meta.strides).map(stride).collect();
        Ok(self.with(ranges.iter().map(|r| r.count).collect(), strides, offset as usize))
    }

    /// Repeats extents of 1, and prepends dimensions, without a copy (stride 0).
    ///
    /// # Errors
    /// [`Error::Shape`] if the view does not broadcast to exactly `shape`.
    pub fn expand(&self, shape: &Shape) -> Result<View> {
        let from = &self.meta.shape;
        let fits = from.rank() <= shape.rank()
            && from.iter().rev().zip(shape.iter().rev()).all(|(&f, &t)| f == t || f == 1);
        let want = || format!("a shape that broadcasts to {shape}");
        crate::ensure!(fits, Error::shape("expand", [from], want()));
        shape.checked_numel("expand")?;
        let added = shape.rank() - from.rank();
        let mut strides: Strides = smallvec::smallvec![0; added];
        for (d, &stride) in self.meta.strides.iter().enumerate() {
            strides.push(if from[d] == shape[d + added] { stride } else { 0 });
        }
        Ok(self.with(shape.clone(), strides, self.offset))
    }
}

/// Which elements of one axis a slice selects.
#[derive(Clone, Copy, Debug)]
pub struct SliceRange {
    /// The index of the first element.
    pub start: usize,
    /// The number of elements.
    pub count: usize,
    /// The distance between neighbours; may be negative, never zero.
    pub step: isize,
}

impl SliceRange {
    fn check(&self, extent: usize) -> Result<()> {
        let fits = self.count == 0 || self.start < extent && self.count <= self.most(extent);
        let got = || format!("{self:?}");
        crate::ensure!(fits, Error::value("slice", got(), format!("a range within {extent}")));
        Ok(())
    }

    /// The most elements that fit from the first one on; none for a step of 0.
    fn most(&self, extent: usize) -> usize {
        let room = if self.step < 0 { self.start } else { extent - 1 - self.start };
        room.checked_div(self.step.unsigned_abs()).map_or(0, |steps| steps + 1)
    }
}

#[cfg(test)]
mod tests;
