//! Walking tensors of one shape together, each thread from element to element.

use smallvec::SmallVec;

use crate::ops::Meta;
use crate::shape::{Shape, memory_order};

/// One dimension of tensors that are walked together.
#[derive(Clone, PartialEq, Debug)]
struct Dim {
    extent: usize,
    /// Each tensor's step, in elements.
    strides: SmallVec<[isize; 8]>,
}

/// A matrix whose rows are dense in one tensor, and whose columns are in another.
pub struct Turn {
    /// The number of rows.
    pub rows: usize,
    /// The number of columns.
    pub columns: usize,
    /// The first tensor's step from row to row.
    pub down: isize,
    /// The second tensor's step from column to column.
    pub across: isize,
}

/// The dimensions of a common walk, outermost first; extents of 1 are dropped, and neighbours that
/// are one range in all tensors are merged.
#[derive(Clone, Debug)]
pub struct Walk {
    dims: Vec<Dim>,
    /// The number of tensors.
    pub tensors: usize,
    /// The number of elements.
    pub count: usize,
}

impl Walk {
    /// Walks tensors that broadcast to `shape`, in the memory order of the last one.
    pub fn new(shape: &Shape, metas: &[&Meta]) -> Walk {
        let last = |d: usize| strides(shape, metas, d).last().copied().unwrap_or_default();
        let order = memory_order((0..shape.rank()).map(last));
        let dim = |d: usize| Dim { extent: shape[d], strides: strides(shape, metas, d) };
        let dims = order.into_iter().map(dim).collect();
        let mut walk = Walk { dims, tensors: metas.len(), count: shape.numel() };
        walk.merge();
        walk
    }

    /// Walks some dimensions of tensors of one rank, in this order.
    pub fn along(axes: &[usize], metas: &[&Meta]) -> Walk {
        let strides = |d: usize| metas.iter().map(|meta| meta.strides[d]).collect();
        let dims: Vec<Dim> =
            axes.iter().map(|&d| Dim { extent: metas[0].shape[d], strides: strides(d) }).collect();
        let count = dims.iter().map(|dim| dim.extent).product();
        let mut walk = Walk { dims, tensors: metas.len(), count };
        walk.merge();
        walk
    }

    /// At least one dimension is left.
    fn merge(&mut self) {
        let mut made: Vec<Dim> = Vec::new();
        for dim in self.dims.drain(..).filter(|dim| dim.extent != 1) {
            let extent = dim.extent as isize;
            let follows = |(outer, inner): (&isize, &isize)| *outer == inner * extent;
            match made.last_mut() {
                Some(outer) if outer.strides.iter().zip(&dim.strides).all(follows) => {
                    *outer = Dim { extent: outer.extent * dim.extent, strides: dim.strides };
                }
                _ => made.push(dim),
            }
        }
        if made.is_empty() {
            made.push(Dim { extent: 1, strides: SmallVec::from_elem(1, self.tensors) });
        }
        self.dims = made;
    }

    /// The extents and steps of two dimensions, along one of which the first tensor's neighbours
    /// lie, and along the other those of the second; and a walk along the others. None where a
    /// tensor has none, or they lie along one dimension, or there are no elements.
    pub fn turn(&self) -> Option<(Turn, Walk)> {
        let along = |t: usize| self.dims.iter().position(|dim| dim.strides[t] == 1);
        let (first, second) = (along(0)?, along(1)?);
        if first == second || self.count == 0 {
            return None;
        }
        let (columns, rows) = (&self.dims[first], &self.dims[second]);
        let turn = Turn {
            rows: rows.extent,
            columns: columns.extent,
            down: rows.strides[0],
            across: columns.strides[1],
        };
        let mut rest = Walk { count: self.count / turn.rows / turn.columns, ..self.clone() };
        let is_other = |d: usize| d != first && d != second;
        rest.dims =
            (0..self.rank()).filter(|&d| is_other(d)).map(|d| self.dims[d].clone()).collect();
        rest.merge();
        Some((turn, rest))
    }

    /// The extents of its dimensions, outermost first, and each tensor's steps along them.
    pub fn dims(&self) -> impl Iterator<Item = (usize, &[isize])> {
        self.dims.iter().map(|dim| (dim.extent, &*dim.strides))
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// Each tensor's step from element to element, where it has one.
    pub fn steps(&self) -> Option<&[isize]> {
        let [dim] = &*self.dims else { return None };
        Some(&dim.strides)
    }

    /// The type that counts its elements, and that steps are multiplied in.
    pub fn index(&self) -> &'static str {
        let is_short = |step: &isize| i32::try_from(*step).is_ok();
        let are_short = self.dims.iter().all(|dim| dim.strides.iter().all(is_short));
        if are_short && i32::try_from(self.count).is_ok() { "uint32" } else { "uint64" }
    }

    /// Whether the elements of every tensor lie one after the other.
    pub fn is_flat(&self) -> bool {
        matches!(&*self.dims, [dim] if dim.strides.iter().all(|&stride| stride == 1))
    }

    /// Its fields: the extents, then the strides of each tensor.
    pub fn words(&self) -> Vec<u64> {
        let extents = self.dims.iter().map(|dim| dim.extent as u64);
        let of = |t: usize| self.dims.iter().map(move |dim| dim.strides[t] as u64);
        extents.chain((0..self.tensors).flat_map(of)).collect()
    }
}

/// The strides of dimension `d` of `shape`; 0 where a tensor is repeated.
fn strides(shape: &Shape, metas: &[&Meta], d: usize) -> SmallVec<[isize; 8]> {
    let of = |meta: &&Meta| {
        let own = (d + meta.shape.rank()).checked_sub(shape.rank());
        own.filter(|&own| meta.shape[own] != 1).map_or(0, |own| meta.strides[own])
    };
    metas.iter().map(of).collect()
}
