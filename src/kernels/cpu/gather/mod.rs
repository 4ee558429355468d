//! Gather and scatter-add: copying rows by index, and adding them back.

mod backward;
mod forward;
mod indices;
mod places;

use std::ops::Range;
use std::sync::Arc;

use super::not_float;
use super::walk::{Walk, dims};
use crate::error::Result;
use crate::kernels::{Kernel, Width};
use crate::ops::index::{Gather, GatherGrad, Places};
use crate::ops::{Family, Meta};
use indices::Indices;

/// Prepares (x, indices) -> y.
///
/// # Errors
/// Those of [`Shape::axis`](crate::shape::Shape::axis).
pub fn gather(op: &Gather, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let axis = io[0].shape.axis(op.name(), op.axis)?;
    let indices = Indices::new(op.name(), 1, Some(io[0].shape[axis]), io[1]);
    Ok(forward::forward(indices, io[0], axis, width))
}

/// Prepares (dy, indices) -> dx.
///
/// # Errors
/// Those of [`GatherGrad::shape`]; [`crate::Error::DType`] for types that are not floats.
pub fn gather_grad(op: &GatherGrad, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let (_, axis) = op.shape(io[0], io[1])?;
    let axes = axis..axis + io[1].shape.rank();
    let indices = Indices::new(op.name(), 1, Some(op.size), io[1]);
    crate::dispatch!(float io[0].dtype,
        T => Ok(backward::backward::<T>(indices, op.size, io[0], axes, width)),
        else => not_float(op.name(), io[0]))
}

/// Prepares indices -> int64 positions.
pub fn places(op: &Places, io: &[&Meta]) -> Arc<dyn Kernel> {
    places::places(Indices::new(op.name(), 0, op.size, io[0]))
}

/// The dimensions of a tensor before, within and after a range of axes.
struct Split {
    outer: Walk<1>,
    middle: Walk<1>,
    inner: Walk<1>,
}

impl Split {
    fn new(meta: &Meta, axes: Range<usize>) -> Split {
        let dims = dims([meta]);
        let walk = |range: Range<usize>| Walk::new(dims[range].iter().copied());
        let (start, end) = (axes.start, axes.end);
        Split { outer: walk(0..start), middle: walk(axes), inner: walk(end..dims.len()) }
    }
}

/// The offset of element `at` of a walk.
fn place(walk: &Walk<1>, at: usize) -> isize {
    walk.runs(at..at + 1).next().map_or(0, |([place], _)| place)
}
