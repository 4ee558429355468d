//! A view says how a tensor lies in a block. Reshape, permute, slice and expand make views.

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::block::Block;
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::{Shape, Strides};

/// Element type, shape and strides: all that an operation may know of a tensor ahead of time.
#[derive(PartialEq, Eq, Hash, Debug)]
pub struct Meta {
    /// Type of the elements.
    pub dtype: DType,
    /// Extents.
    pub shape: Shape,
    /// Steps in elements.
    pub strides: Strides,
}

/// The metas of an operation's inputs or outputs.
pub type Metas = SmallVec<[Meta; 2]>;

impl Clone for Meta {
    fn clone(&self) -> Self {
        let strides = Strides::from_slice(&self.strides);
        Meta { dtype: self.dtype, shape: self.shape.clone(), strides }
    }
}

impl Meta {
    /// A row-major tensor.
    pub fn new(dtype: DType, shape: impl Into<Shape>) -> Self {
        let shape = shape.into();
        let strides = shape.contiguous();
        Meta { dtype, shape, strides }
    }

    /// A dense tensor of this shape whose memory order is that of `self`'s strides.
    pub fn like(&self, dtype: DType) -> Self {
        let strides = self.shape.dense_like(&self.strides);
        Meta { dtype, shape: self.shape.clone(), strides }
    }

    /// The number of elements.
    pub fn numel(&self) -> usize {
        self.shape.numel()
    }

    /// Bytes of the elements (not of the memory they are spread over).
    pub fn bytes(&self) -> usize {
        self.numel() * self.dtype.size()
    }

    /// Whether the elements lie row-major without gaps (extents of 1 may have any stride).
    pub fn is_contiguous(&self) -> bool {
        let mut step = 1isize;
        for (&extent, &stride) in self.shape.iter().zip(&self.strides).rev() {
            if extent != 1 && stride != step {
                return self.numel() == 0;
            }
            step *= extent as isize;
        }
        true
    }

    /// Whether the elements fill one range of memory, each place once, in some order.
    pub fn is_dense(&self) -> bool {
        if self.is_contiguous() {
            return true;
        }
        let dense = self.shape.dense_like(&self.strides);
        (0..self.shape.rank()).all(|d| self.shape[d] == 1 || self.strides[d] == dense[d])
    }

    /// Lowest and one past the highest element, counted from the first one's place.
    pub fn span(&self) -> Range<isize> {
        if self.numel() == 0 {
            return 0..0;
        }
        let (mut low, mut high) = (0, 1);
        for (&extent, &stride) in self.shape.iter().zip(&self.strides) {
            let reach = (extent as isize - 1) * stride;
            if reach < 0 { low += reach } else { high += reach }
        }
        low..high
    }
}

/// Whether two elements share one place (an expanded tensor).
pub fn repeats(meta: &Meta) -> bool {
    meta.numel() > 0 && meta.shape.iter().zip(&meta.strides).any(|(&e, &s)| e > 1 && s == 0)
}

/// A tensor's place in a block.
#[derive(Clone, Debug)]
pub struct View {
    /// The memory.
    pub block: Arc<Block>,
    /// What lies there; shared, since a view is copied far more often than it is made.
    pub meta: Arc<Meta>,
    /// The first element's place, in elements.
    pub offset: usize,
}

impl View {
    /// A tensor in a new block of its own, without memory yet. `meta` must be dense.
    pub fn new(device: &Arc<Device>, meta: Meta) -> Self {
        View { block: Block::new(device, meta.bytes()), meta: Arc::new(meta), offset: 0 }
    }

    /// The bytes of the block that the view may touch.
    pub fn byte_range(&self) -> Range<usize> {
        let (span, size) = (self.meta.span(), self.meta.dtype.size());
        let at = |place: isize| (self.offset as isize + place) as usize * size;
        at(span.start)..at(span.end)
    }

    /// Whether the two may touch the same bytes.
    pub fn overlaps(&self, other: &View) -> bool {
        let (a, b) = (self.byte_range(), other.byte_range());
        Arc::ptr_eq(&self.block, &other.block) && a.start < b.end && b.start < a.end
    }

    /// Whether both name the same elements in the same order.
    pub fn is_same(&self, other: &View) -> bool {
        Arc::ptr_eq(&self.block, &other.block)
            && self.offset == other.offset
            && self.meta == other.meta
    }

    /// Whether writing the view writes every byte of its block.
    pub fn covers_block(&self) -> bool {
        self.meta.bytes() == self.block.bytes() && self.meta.is_dense()
    }

    /// The address of the first element. Memory that the block does not have yet is made, and
    /// zeroed unless this view is about to write all of it.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn address(&self, write: bool) -> Result<*mut u8> {
        let whole = write && self.covers_block();
        let start = if whole { self.block.to_overwrite()? } else { self.block.to_touch()? };
        Ok(start.as_ptr().wrapping_add(self.offset * self.meta.dtype.size()))
    }

    fn with(&self, shape: Shape, strides: Strides, offset: usize) -> View {
        let meta = Meta { dtype: self.meta.dtype, shape, strides };
        View { block: self.block.clone(), meta: Arc::new(meta), offset }
    }

    /// The same elements, row-major, in another shape; `None` where that needs a copy.
    ///
    /// # Errors
    /// [`Error::Shape`] where the number of elements differs.
    pub fn reshape(&self, shape: &Shape) -> Result<Option<View>> {
        let (from, to) = (self.meta.numel(), shape.checked_numel("reshape")?);
        let want = || format!("a shape of {from} elements, not {shape}");
        crate::ensure!(from == to, Error::shape("reshape", [&self.meta.shape], want()));
        Ok(reshape_strides(&self.meta, shape).map(|s| self.with(shape.clone(), s, self.offset)))
    }

    /// Dimension `i` of the result is dimension `axes[i]` of the view.
    ///
    /// # Errors
    /// [`Error::Value`] where `axes` is not a permutation.
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

    /// Along each axis the elements `start`, `start + step`, ..., `count` of them.
    ///
    /// # Errors
    /// [`Error::Value`] where an element lies outside.
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
        let strides = ranges.iter().zip(&meta.strides).map(|(r, s)| r.step * s).collect();
        Ok(self.with(ranges.iter().map(|r| r.count).collect(), strides, offset as usize))
    }

    /// Repeats extents of 1, and adds dimensions in front, without a copy (stride 0).
    ///
    /// # Errors
    /// [`Error::Shape`] where the view does not broadcast to exactly `shape`.
    pub fn expand(&self, shape: &Shape) -> Result<View> {
        let from = &self.meta.shape;
        let fits = from.rank() <= shape.rank()
            && from.iter().rev().zip(shape.iter().rev()).all(|(&f, &t)| f == t || f == 1);
        let want = || format!("a shape that broadcasts to {shape}");
        crate::ensure!(fits, Error::shape("expand", [from], want()));
        let added = shape.rank() - from.rank();
        let mut strides: Strides = smallvec::smallvec![0; added];
        for (d, &stride) in self.meta.strides.iter().enumerate() {
            strides.push(if from[d] == shape[d + added] { stride } else { 0 });
        }
        Ok(self.with(shape.clone(), strides, self.offset))
    }
}

/// Which elements of one axis a slice takes.
#[derive(Clone, Copy, Debug)]
pub struct SliceRange {
    /// The first one.
    pub start: usize,
    /// How many.
    pub count: usize,
    /// From one to the next; may be negative, never zero.
    pub step: isize,
}

impl SliceRange {
    fn check(&self, extent: usize) -> Result<()> {
        let reach = (self.count as isize - 1).checked_mul(self.step);
        let last = reach.and_then(|r| r.checked_add(self.start as isize));
        let inside = |i: isize| i >= 0 && (i as usize) < extent;
        let fits =
            self.count == 0 || (self.step != 0 && self.start < extent && last.is_some_and(inside));
        let got = || format!("{self:?}");
        crate::ensure!(fits, Error::value("slice", got(), format!("a range within {extent}")));
        Ok(())
    }
}

/// Strides of the same elements in another shape; `None` where no strides do it.
fn reshape_strides(meta: &Meta, shape: &Shape) -> Option<Strides> {
    if meta.numel() == 0 || meta.is_contiguous() {
        return Some(shape.contiguous());
    }
    // Runs of dimensions that behave as one, outermost first: (extent, innermost stride).
    let mut runs: SmallVec<[(usize, isize); 4]> = SmallVec::new();
    for (&extent, &stride) in meta.shape.iter().zip(&meta.strides).filter(|(e, _)| **e != 1) {
        match runs.last_mut() {
            Some((n, step)) if *step == stride * extent as isize => {
                *n *= extent;
                *step = stride;
            }
            _ => runs.push((extent, stride)),
        }
    }
    let mut strides: Strides = smallvec::smallvec![0; shape.rank()];
    let mut run = runs.pop().unwrap_or((1, 1));
    let mut filled = 1;
    for (d, &extent) in shape.iter().enumerate().rev() {
        if extent == 1 {
            strides[d] = run.1 * filled as isize;
            continue;
        }
        if filled == run.0 {
            run = runs.pop()?;
            filled = 1;
        }
        strides[d] = run.1 * filled as isize;
        filled *= extent;
        if !run.0.is_multiple_of(filled) {
            return None;
        }
    }
    Some(strides)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn view(shape: &[usize]) -> View {
        View::new(crate::device::cpu::device(), Meta::new(DType::Float32, shape))
    }

    /// The places of all elements in row-major order of the view.
    fn places(v: &View) -> Vec<isize> {
        let mut found = vec![v.offset as isize];
        for (&extent, &stride) in v.meta.shape.iter().zip(&v.meta.strides) {
            let steps = || (0..extent as isize).map(|i| i * stride);
            found = found.iter().flat_map(|&base| steps().map(move |s| base + s)).collect();
        }
        found
    }

    proptest! {
        #[test]
        fn a_reshaped_view_names_the_same_elements(
            a in 1usize..4, b in 1usize..4, c in 1usize..4, which in 0usize..6, swap: bool,
        ) {
            let base = view(&[a, b, c]);
            let base = if swap { base.permute(&[1, 0, 2]).unwrap() } else { base };
            let e = base.meta.shape.clone();
            let shapes: [Shape; 6] = [
                [a * b * c].into(), [e[0], b * c * a / e[0]].into(), [e[0] * e[1], c].into(),
                [e[0], 1, e[1], c].into(), [1, e[0], e[1], c, 1].into(), [c, a, b].into(),
            ];
            if let Some(other) = base.reshape(&shapes[which]).unwrap() {
                prop_assert_eq!(places(&other), places(&base));
            }
        }
    }

    #[test]
    fn slices_stay_inside() {
        let v = view(&[5]);
        let back = v.slice(&[SliceRange { start: 4, count: 3, step: -2 }]).unwrap();
        assert_eq!(places(&back), [4, 2, 0]);
        assert_eq!(back.byte_range(), 0..20);
        assert!(v.slice(&[SliceRange { start: 4, count: 2, step: 1 }]).is_err());
        assert!(v.slice(&[SliceRange { start: 0, count: 2, step: 0 }]).is_err());
    }

    #[test]
    fn expanding_repeats_without_memory() {
        let v = view(&[3, 1]).expand(&[2, 3, 4].into()).unwrap();
        assert_eq!(v.meta.strides.as_slice(), &[0, 1, 0]);
        assert!(view(&[3]).expand(&[4].into()).is_err());
    }

    #[test]
    fn permuting_needs_every_axis_once() {
        assert!(view(&[2, 3]).permute(&[0, 0]).is_err());
        assert_eq!(view(&[2, 3]).permute(&[-1, 0]).unwrap().meta.shape, Shape::from([3, 2]));
    }
}
