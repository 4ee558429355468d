//! What the arguments, results and states of a step are.

use std::sync::Arc;

use crate::device::Device;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::Shape;
use crate::view::{Meta, View};

/// A tensor of a step, as the program that recorded it names it.
#[derive(Clone, Debug)]
pub struct Tensor {
    /// The name.
    pub name: String,
    /// The type of the elements.
    pub dtype: DType,
    /// The extents.
    pub shape: Shape,
}

impl Tensor {
    pub(super) fn new(name: String, meta: &Meta) -> Tensor {
        Tensor { name, dtype: meta.dtype, shape: meta.shape.clone() }
    }

    /// Bytes of its elements.
    pub fn bytes(&self) -> usize {
        self.shape.numel() * self.dtype.size()
    }

    /// Checks that a tensor can be passed for this argument.
    pub(super) fn check(&self, view: &View, device: &Arc<Device>) -> Result<()> {
        let op = format!("Step.run: argument {}", self.name);
        let dtype = view.meta.dtype;
        crate::ensure!(dtype == self.dtype, Error::dtype(op, [dtype], self.dtype.name()));
        let shape = &view.meta.shape;
        crate::ensure!(*shape == self.shape, Error::shape(op, [shape], self.shape.to_string()));
        let is_here = view.block.device().id() == device.id();
        let message = || format!("is on {:?}, want {device:?}", view.block.device());
        crate::ensure!(is_here, Error::device(op, message()));
        Ok(())
    }

    pub(super) fn check_bytes(&self, op: &'static str, bytes: usize) -> Result<()> {
        let got = || format!("{bytes} bytes for {}", self.name);
        let want = || format!("{} bytes: {} {}", self.bytes(), self.dtype, self.shape);
        crate::ensure!(bytes == self.bytes(), Error::value(op, got(), want()));
        Ok(())
    }
}

/// The tensor with this index.
pub(super) fn at<'a, T>(op: &'static str, what: &str, all: &'a [T], index: usize) -> Result<&'a T> {
    let want = || format!("one of {}", all.len());
    all.get(index).ok_or_else(|| Error::value(op, format!("{what} {index}"), want()))
}
