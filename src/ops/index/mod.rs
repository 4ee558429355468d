//! Indexing by a tensor of indices.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::cpu::gather::{self, Indices};
use super::{Catalog, Cost, Family, Kernel, Meta, Metas, Width, exactly};
use crate::error::{Error, Result};
use crate::shape::Shape;

/// (x, indices) -> y: `y[a.., i.., b..] = x[a.., indices[i..], b..]` where `indices` stand on
/// `axis` (ONNX `Gather`). Indices are of any int dtype and rank; negative ones count from the
/// end. One out of range is [`Error::Index`], before anything is written. y is row-major.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Gather {
    /// The axis of x that is indexed.
    pub axis: i64,
}

impl Catalog for Gather {
    fn names() -> Vec<&'static str> {
        vec!["gather"]
    }
}

impl Family for Gather {
    fn name(&self) -> &'static str {
        "gather"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [x, indices] = exactly(self.name(), inputs)?;
        check_indices(self.name(), x, indices)?;
        let axis = x.shape.axis(self.name(), self.axis)?;
        let (before, after) = (&x.shape[..axis], &x.shape[axis + 1..]);
        let shape: Shape = [before, &indices.shape, after].concat().into_iter().collect();
        shape.checked_numel(self.name())?;
        Ok(smallvec::smallvec![Meta::new(x.dtype, shape)])
    }

    fn checked(&self) -> &'static [usize] {
        &[1]
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        Cost::elementwise(&io[1..], 1)
    }

    fn cpu(&self, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
        let axis = io[0].shape.axis(self.name(), self.axis)?;
        let indices = Indices::new(self.name(), io[0].shape[axis], io[1]);
        Ok(gather::forward(indices, io[0], axis, width))
    }
}

/// (dy, indices) -> dx: the gradient of [`Gather`] to x, whose axis has `size` entries. Where an
/// index repeats, the gradients are added in the order of the indices, in float32 for float16 and
/// bfloat16. dx is row-major.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct GatherGrad {
    /// The axis of x that was indexed.
    pub axis: i64,
    /// Its extent.
    pub size: usize,
}

impl GatherGrad {
    /// The shape of dx, and the axis.
    fn shape(&self, dy: &Meta, indices: &Meta) -> Result<(Shape, usize)> {
        let (rank, taken) = (dy.shape.rank(), indices.shape.rank());
        let want = || format!("a gradient that contains the indices' shape {}", indices.shape);
        let bad = || Error::shape(self.name(), [&dy.shape, &indices.shape], want());
        crate::ensure!(rank >= taken, bad());
        let any: Shape = (0..=rank - taken).collect();
        let axis = any.axis(self.name(), self.axis)?;
        crate::ensure!(dy.shape[axis..axis + taken] == indices.shape[..], bad());
        let (before, after) = (&dy.shape[..axis], &dy.shape[axis + taken..]);
        let shape: Shape = [before, &[self.size], after].concat().into_iter().collect();
        shape.checked_numel(self.name())?;
        Ok((shape, axis))
    }
}

impl Catalog for GatherGrad {
    fn names() -> Vec<&'static str> {
        vec!["gather_grad"]
    }
}

impl Family for GatherGrad {
    fn name(&self) -> &'static str {
        "gather_grad"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [dy, indices] = exactly(self.name(), inputs)?;
        check_indices(self.name(), dy, indices)?;
        crate::ensure!(
            dy.dtype.is_float(),
            Error::dtype(self.name(), [dy.dtype], "a gradient of a float dtype")
        );
        let (shape, _) = self.shape(dy, indices)?;
        Ok(smallvec::smallvec![Meta::new(dy.dtype, shape)])
    }

    fn checked(&self) -> &'static [usize] {
        &[1]
    }

    fn cpu(&self, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
        let (_, axis) = self.shape(io[0], io[1])?;
        let axes = axis..axis + io[1].shape.rank();
        let indices = Indices::new(self.name(), self.size, io[1]);
        crate::dispatch!(float io[0].dtype,
            T => Ok(gather::backward::<T>(indices, io[0], axes, width)),
            else => Err(Error::dtype(self.name(), [io[0].dtype], "a float dtype")))
    }
}

fn check_indices(op: &'static str, x: &Meta, indices: &Meta) -> Result<()> {
    crate::ensure!(
        indices.dtype.is_int(),
        Error::dtype(op, [x.dtype, indices.dtype], "indices of an int dtype")
    );
    Ok(())
}
