//! Walking several tensors of one shape together, run by run.
#![allow(unsafe_code)]

use std::ops::Range;

use smallvec::SmallVec;

use super::access::copy;
use crate::shape::memory_order;
use crate::view::Meta;

/// The maximum number of elements of a tile's side.
const TILE: usize = 64;

/// One dimension of `N` tensors that are walked together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dim<const N: usize> {
    /// The number of steps.
    pub extent: usize,
    /// Each tensor's step, in elements.
    pub strides: [isize; N],
}

/// The dimensions of a common walk, outermost first. Extents of 1 are dropped and contiguous
/// neighbours are merged, so the innermost runs are as long as possible.
#[derive(Clone, Debug)]
pub struct Walk<const N: usize> {
    dims: SmallVec<[Dim<N>; 4]>,
    len: usize,
}

impl<const N: usize> Walk<N> {
    /// Walks the dimensions in the order given.
    pub fn new(dims: impl IntoIterator<Item = Dim<N>>) -> Self {
        let mut len = 1;
        let mut dims = merged(dims.into_iter().inspect(|dim| len *= dim.extent));
        if dims.is_empty() {
            dims.push(Dim { extent: 1, strides: [1; N] });
        }
        Walk { dims, len }
    }

    /// Walks all dimensions of tensors of one shape in the memory order of the first.
    pub fn in_memory_order(metas: [&Meta; N]) -> Self {
        Walk::new(sorted(&dims(metas), 0))
    }

    /// Walks all dimensions of tensors of one shape, in tiles if the memory orders of the first two
    /// differ (say, one is transposed), so that both are read a cache line at a time.
    pub fn in_tiles(metas: [&Meta; N]) -> Self {
        let Walk { mut dims, .. } = Walk::in_memory_order(metas);
        let last = dims.len() - 1;
        let inner = dims[last];
        let step = |d: &usize| dims[*d].strides[1].unsigned_abs();
        let other = (0..=last).rev().min_by_key(step).unwrap_or(last);
        let tile = (1..=TILE).rev().find(|&n| inner.extent.is_multiple_of(n)).unwrap_or(1);
        if other != last && tile >= TILE / 4 {
            let across = dims.remove(other);
            let strides = inner.strides.map(|s| s * tile as isize);
            dims[last - 1] = Dim { extent: inner.extent / tile, strides };
            dims.extend([across, Dim { extent: tile, ..inner }]);
        }
        Walk::new(dims)
    }

    /// The number of elements.
    pub fn elements(&self) -> usize {
        self.len
    }

    /// The innermost dimension.
    pub fn inner(&self) -> Dim<N> {
        self.dims[self.dims.len() - 1]
    }

    /// The same walk with its longest dimension innermost.
    pub fn longest_inside(mut self) -> Self {
        let longest = (0..self.dims.len()).max_by_key(|&d| self.dims[d].extent).unwrap_or(0);
        let inner = self.dims.remove(longest);
        self.dims.push(inner);
        self
    }

    /// The walk over all but the innermost dimension, and that dimension.
    pub fn split_inner(mut self) -> (Self, Dim<N>) {
        let inner = self.dims.pop().expect("a walk has a dimension");
        (Walk::new(self.dims), inner)
    }

    /// The runs along the innermost dimension that make up the elements `range` (counted in the
    /// walk's order): the offset of a run's first element in each tensor, and its length.
    ///
    /// An iterator, because a loop over it is compiled for the instruction set of the surrounding
    /// function, which holds for a closure only if the compiler happens to inline it.
    #[inline(always)]
    pub fn runs(&self, range: Range<usize>) -> Runs<'_, N> {
        let (inner, outer) = self.dims.split_last().expect("a walk has a dimension");
        let (start, row) = match range.is_empty() {
            true => (0, 0),
            false => (range.start % inner.extent, range.start / inner.extent),
        };
        Runs { outer, inner, index: indices(outer, row), start, left: range.len() }
    }
}

impl<const N: usize> Walk<N> {
    /// The offsets in each tensor of the elements `range`.
    #[inline(always)]
    pub fn offsets(&self, range: Range<usize>) -> impl Iterator<Item = [isize; N]> {
        let steps = self.inner().strides;
        self.runs(range).flat_map(move |(at, n)| {
            (0..n as isize).map(move |i| std::array::from_fn(|t| at[t] + i * steps[t]))
        })
    }
}

impl Walk<1> {
    /// Walks a tensor in memory order, each of its places once.
    pub fn without_repeats(meta: &Meta) -> Self {
        let mut dims = sorted(&dims([meta]), 0);
        dims.retain(|dim| dim.extent <= 1 || dim.strides[0] != 0);
        Walk::new(dims)
    }

    /// Whether the elements lie one after the other.
    pub fn is_flat(&self) -> bool {
        self.inner() == Dim { extent: self.len, strides: [1] }
    }

    /// Copies all elements into contiguous memory.
    ///
    /// # Safety
    /// The elements can be read, and as many can be written.
    pub unsafe fn copy<T: Copy>(&self, from: *const T, mut to: *mut T) {
        let step = self.inner().strides[0];
        for ([at], n) in self.runs(0..self.elements()) {
            let from = from.wrapping_offset(at);
            // SAFETY: by the caller's promise.
            unsafe {
                match step {
                    1 => copy(from, to, n),
                    _ => (0..n).for_each(|i| *to.add(i) = *from.offset(i as isize * step)),
                }
                to = to.add(n);
            }
        }
    }
}

/// See [`Walk::runs`].
#[derive(Clone, Debug)]
pub struct Runs<'a, const N: usize> {
    outer: &'a [Dim<N>],
    inner: &'a Dim<N>,
    /// The next run's index in the outer dimensions, and its start in the inner one.
    index: SmallVec<[usize; 4]>,
    start: usize,
    /// The number of remaining elements.
    left: usize,
}

impl<const N: usize> Iterator for Runs<'_, N> {
    type Item = ([isize; N], usize);

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        let length = self.left.min(self.inner.extent - self.start);
        let offsets = place(self.outer, &self.index, self.inner, self.start);
        self.left -= length;
        self.start = 0;
        next(self.outer, &mut self.index);
        Some((offsets, length))
    }
}

/// The dimensions of tensors of one shape, row-major.
pub fn dims<const N: usize>(metas: [&Meta; N]) -> SmallVec<[Dim<N>; 4]> {
    let dim = |d: usize| Dim { extent: metas[0].shape[d], strides: metas.map(|m| m.strides[d]) };
    (0..metas[0].shape.rank()).map(dim).collect()
}

/// The dimensions in the memory order of tensor `t`.
pub fn sorted<const N: usize>(dims: &[Dim<N>], t: usize) -> SmallVec<[Dim<N>; 4]> {
    memory_order(dims.iter().map(|dim| dim.strides[t])).into_iter().map(|d| dims[d]).collect()
}

/// The dimensions without extents of 1 and with contiguous neighbours merged.
pub fn merged<const N: usize>(dims: impl IntoIterator<Item = Dim<N>>) -> SmallVec<[Dim<N>; 4]> {
    let mut merged: SmallVec<[Dim<N>; 4]> = SmallVec::new();
    for dim in dims {
        match merged.last_mut() {
            _ if dim.extent == 1 => {}
            Some(outer) if steps_on(outer, &dim) => {
                *outer = Dim { extent: outer.extent * dim.extent, ..dim }
            }
            _ => merged.push(dim),
        }
    }
    merged
}

fn steps_on<const N: usize>(outer: &Dim<N>, inner: &Dim<N>) -> bool {
    (0..N).all(|t| outer.strides[t] == inner.strides[t] * inner.extent as isize)
}

fn indices<const N: usize>(dims: &[Dim<N>], mut at: usize) -> SmallVec<[usize; 4]> {
    let mut index: SmallVec<[usize; 4]> = smallvec::smallvec![0; dims.len()];
    for (i, dim) in index.iter_mut().zip(dims).rev() {
        // A walk without elements has no position to start from.
        (*i, at) = (at % dim.extent.max(1), at / dim.extent.max(1));
    }
    index
}

#[inline(always)]
fn place<const N: usize>(
    outer: &[Dim<N>],
    index: &[usize],
    inner: &Dim<N>,
    start: usize,
) -> [isize; N] {
    let mut offsets = inner.strides.map(|s| s * start as isize);
    for (dim, &i) in outer.iter().zip(index) {
        for (offset, stride) in offsets.iter_mut().zip(dim.strides) {
            *offset += stride * i as isize;
        }
    }
    offsets
}

#[inline(always)]
fn next<const N: usize>(dims: &[Dim<N>], index: &mut [usize]) {
    for (i, dim) in index.iter_mut().zip(dims).rev() {
        *i += 1;
        if *i < dim.extent {
            return;
        }
        *i = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use proptest::prelude::*;

    fn meta(shape: &[usize], strides: &[isize]) -> Meta {
        Meta { strides: strides.into(), ..Meta::new(DType::Float32, shape) }
    }

    #[test]
    fn neighbours_that_step_as_one_are_merged() {
        let dense = meta(&[2, 3, 4], &[12, 4, 1]);
        assert_eq!(Walk::in_memory_order([&dense]).inner(), Dim { extent: 24, strides: [1] });
        let other = meta(&[2, 3, 4], &[12, 1, 3]);
        let both = Walk::in_memory_order([&dense, &other]);
        assert_eq!(both.inner(), Dim { extent: 4, strides: [1, 3] });
        assert_eq!(Walk::in_memory_order([&meta(&[], &[])]).elements(), 1);
    }

    #[test]
    fn tiles_reach_every_element_once() {
        let (rows, columns) = (meta(&[70, 96], &[96, 1]), meta(&[70, 96], &[1, 70]));
        let walk = Walk::in_tiles([&rows, &columns]);
        assert_eq!(walk.inner(), Dim { extent: 48, strides: [1, 70] });
        let mut places = Vec::new();
        for ([a, b], n) in walk.runs(0..walk.elements()) {
            places.extend((0..n as isize).map(|i| (a + i, b + i * 70)));
        }
        places.sort_unstable();
        let want = |p: isize| (p, p / 96 + p % 96 * 70);
        assert!(places.into_iter().eq((0..70 * 96).map(want)));
        let same = Walk::in_tiles([&rows, &rows]);
        assert_eq!(same.inner(), Dim { extent: 70 * 96, strides: [1, 1] });
    }

    proptest! {
        #[test]
        fn any_range_is_cut_into_the_same_places(
            extents in proptest::collection::vec(0usize..4, 0..4), cut in 0usize..64,
        ) {
            let strides: Vec<isize> = (0..extents.len() as isize).map(|d| 7 - 5 * d).collect();
            let walk = Walk::in_memory_order([&meta(&extents, &strides)]);
            let places = |range: Range<usize>| {
                let mut found = Vec::new();
                let step = walk.inner().strides[0];
                for ([at], n) in walk.runs(range) {
                    found.extend((0..n as isize).map(|i| at + i * step));
                }
                found
            };
            let cut = cut.min(walk.elements());
            let whole = places(0..walk.elements());
            prop_assert_eq!(whole.len(), walk.elements());
            prop_assert_eq!([places(0..cut), places(cut..walk.elements())].concat(), whole);
        }
    }
}
