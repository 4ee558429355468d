//! What an operation may know of a tensor ahead of time.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::dtype::DType;
use crate::shape::{Shape, Strides};

/// Element type, shape and strides: all that an operation may know of a tensor ahead of time.
#[derive(PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
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

    /// The same without an axis, whose extent is 1.
    pub fn without(&self, axis: usize) -> Self {
        let others = || (0..self.shape.rank()).filter(move |&d| d != axis);
        let shape = others().map(|d| self.shape[d]).collect();
        Meta { dtype: self.dtype, shape, strides: others().map(|d| self.strides[d]).collect() }
    }

    /// The same with its axes in this order.
    pub fn permuted(&self, order: &[usize]) -> Self {
        let strides = order.iter().map(|&d| self.strides[d]).collect();
        Meta { dtype: self.dtype, shape: order.iter().map(|&d| self.shape[d]).collect(), strides }
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

    /// The bytes from the lowest to the highest that a view may touch whose first element is
    /// element `offset` of its block.
    pub fn byte_range(&self, offset: usize) -> Range<usize> {
        let (span, size) = (self.span(), self.dtype.size());
        let at = |place: isize| (offset as isize + place) as usize * size;
        at(span.start)..at(span.end)
    }

    /// Whether a view whose first element is number `offset` of a block of `bytes` bytes is all of
    /// it, each element once, in some order.
    pub fn fills(&self, offset: usize, bytes: usize) -> bool {
        self.bytes() == bytes && self.byte_range(offset) == (0..bytes) && !repeats(self)
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

/// Strides of the same elements in another shape; `None` where no strides do it.
pub(super) fn reshape_strides(meta: &Meta, shape: &Shape) -> Option<Strides> {
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
