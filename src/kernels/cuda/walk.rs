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

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// Each tensor's step from element to element, where it has one.
    pub fn steps(&self) -> Option<&[isize]> {
        let [dim] = &*self.dims else { return None };
        Some(&dim.strides)
    }

    /// The type that counts its elements.
    pub fn index(&self) -> &'static str {
        if i32::try_from(self.count).is_ok() { "uint32" } else { "uint64" }
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
