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

    /// Whether the shape and the strides of another library can be computed with: neither sizes
    /// nor places in bytes overflow.
    pub fn fits_memory(&self) -> bool {
        let reach = |(&extent, &stride): (&usize, &isize)| {
            (extent.max(1) as isize - 1).checked_mul(stride)?.checked_abs()
        };
        let mut places = self.shape.iter().zip(&self.strides).map(reach);
        let limit = isize::MAX / 2 / self.dtype.size() as isize;
        self.shape.checked_numel("").is_ok()
            && places
                .try_fold(0isize, |sum, r| sum.checked_add(r?))
                .is_some_and(|total| total < limit)
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

/// Whether two elements share one place: an expanded tensor, or overlapping windows. Strides that
/// nest show that none do; all strides that views of this crate make either nest or are 0.
pub fn repeats(meta: &Meta) -> bool {
    if meta.numel() == 0 || meta.is_contiguous() {
        return false;
    }
    let sizes = meta.shape.iter().zip(&meta.strides).filter(|(extent, _)| **extent > 1);
    let mut dims: SmallVec<[(usize, usize); 4]> =
        sizes.map(|(&extent, &stride)| (stride.unsigned_abs(), extent - 1)).collect();
    dims.sort_unstable();
    let mut reach = 0;
    dims.iter().any(|&(stride, steps)| {
        let nests = stride > reach;
        reach += stride * steps;
        !nests
    })
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

    /// A tensor in a block of its own, with a meta that others share.
    pub fn of(device: &Arc<Device>, meta: &Arc<Meta>) -> Self {
        View { block: Block::new(device, meta.bytes()), meta: meta.clone(), offset: 0 }
    }

    /// The bytes of the block that the view may touch.
    pub fn byte_range(&self) -> Range<usize> {
        let (span, size) = (self.meta.span(), self.meta.dtype.size());
        let at = |place: isize| (self.offset as isize + place) as usize * size;
        at(span.start)..at(span.end)
    }

    /// Whether the two may touch the same bytes.
    pub fn overlaps(&self, other: &View) -> bool {
        if Arc::ptr_eq(&self.block, &other.block) {
            return meet(self.byte_range(), other.byte_range());
        }
        // Memory of another library may have been lent twice, or be a block lent and lent back.
        (self.block.is_lent() || other.block.is_lent())
            && self.addresses().zip(other.addresses()).is_some_and(|(a, b)| meet(a, b))
    }

    /// The byte range as addresses, if the block has memory.
    fn addresses(&self) -> Option<Range<usize>> {
        let (start, range) = (self.block.address()?.addr().get(), self.byte_range());
        Some(start + range.start..start + range.end)
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
        // A single element is never stepped from, and its step may be of any size.
        let stride = |(r, &s): (&SliceRange, &isize)| if r.count > 1 { r.step * s } else { s };
        let strides = ranges.iter().zip(&meta.strides).map(stride).collect();
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
        shape.checked_numel("expand")?;
        let added = shape.rank() - from.rank();
        let mut strides: Strides = smallvec::smallvec![0; added];
        for (d, &stride) in self.meta.strides.iter().enumerate() {
            strides.push(if from[d] == shape[d + added] { stride } else { 0 });
        }
        Ok(self.with(shape.clone(), strides, self.offset))
    }
}

fn meet(a: Range<usize>, b: Range<usize>) -> bool {
    a.start.max(b.start) < a.end.min(b.end)
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
        let fits = self.count == 0 || self.start < extent && self.count <= self.most(extent);
        let got = || format!("{self:?}");
        crate::ensure!(fits, Error::value("slice", got(), format!("a range within {extent}")));
        Ok(())
    }

    /// How many elements there are from the first one on; none for a step of 0.
    fn most(&self, extent: usize) -> usize {
        let room = if self.step < 0 { self.start } else { extent - 1 - self.start };
        room.checked_div(self.step.unsigned_abs()).map_or(0, |steps| steps + 1)
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
        assert!(v.slice(&[SliceRange { start: 0, count: usize::MAX, step: -1 }]).is_err());
        assert!(v.slice(&[SliceRange { start: usize::MAX, count: 1, step: 1 }]).is_err());
        let one = v.slice(&[SliceRange { start: 4, count: 1, step: isize::MAX }]).unwrap();
        assert_eq!(one.byte_range(), 16..20);
    }

    #[test]
    fn expanding_repeats_without_memory() {
        let v = view(&[3, 1]).expand(&[2, 3, 4].into()).unwrap();
        assert_eq!(v.meta.strides.as_slice(), &[0, 1, 0]);
        assert!(view(&[3]).expand(&[4].into()).is_err());
        assert!(view(&[1]).expand(&[1 << 31, 1 << 31].into()).is_err());
    }

    #[test]
    fn metas_that_overflow_are_told() {
        let fits = |shape: &[usize], strides: &[isize]| {
            Meta { dtype: DType::Float64, shape: shape.into(), strides: strides.into() }
                .fits_memory()
        };
        assert!(fits(&[3, 1], &[-8, isize::MAX]) && fits(&[0], &[1]));
        assert!(!fits(&[2], &[isize::MIN]) && !fits(&[3], &[isize::MAX / 2]));
        assert!(!fits(&[usize::MAX], &[0]) && !fits(&[2, 2], &[1 << 59, 1 << 59]));
    }

    #[test]
    fn tensors_whose_elements_share_places_are_told() {
        let shared = |shape: &[usize], strides: &[isize]| {
            repeats(&Meta { strides: strides.into(), ..Meta::new(DType::Float32, shape) })
        };
        assert!(shared(&[2, 3], &[0, 1]) && shared(&[3, 3], &[1, 1]) && shared(&[2, 4], &[-3, 1]));
        assert!(
            !shared(&[2, 3], &[-6, 2]) && !shared(&[3, 1], &[1, 0]) && !shared(&[0, 2], &[0, 0])
        );
    }

    #[test]
    fn permuting_needs_every_axis_once() {
        assert!(view(&[2, 3]).permute(&[0, 0]).is_err());
        assert_eq!(view(&[2, 3]).permute(&[-1, 0]).unwrap().meta.shape, Shape::from([3, 2]));
    }
}
