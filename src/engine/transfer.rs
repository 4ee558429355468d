//! Copies between devices, by way of the host.

use smallvec::smallvec;

use super::record::{self, Mode};
use super::{Engine, of};
use crate::error::{Error, Result};
use crate::ops::copy::{Cast, Copy};
use crate::ops::{Kind, Meta, View};

/// Copies the elements of a tensor into one on another device, of the same shape; the dtype is
/// converted where it was made. Nobody holds a turn.
///
/// # Errors
/// [`Error::Graph`] while a step is recorded, which is on one device; those of the engines.
pub fn transfer(from: &View, to: &View) -> Result<()> {
    let message = || {
        let (a, b) = (from.block.device(), to.block.device());
        format!("a step on one device cannot copy from {a:?} to {b:?}: pass an argument instead")
    };
    let records = record::mode() == Mode::Record;
    crate::ensure!(!records, Error::graph("copy", message()));
    record::settle();
    let bytes = of(from.block.device())?.elements(from, to)?;
    of(to.block.device())?.overwrite(to, &bytes)
}

impl Engine {
    /// The elements of a tensor in row-major order, in the dtype of `like`.
    fn elements(&self, view: &View, like: &View) -> Result<Vec<u8>> {
        let (mut turn, mut dense, dtype) = (self.turn(), view.clone(), like.meta.dtype);
        let mut then = |kind: Kind, view: View| {
            self.fresh(&mut turn, &kind, &mut smallvec![view]).map(|mut made| made.remove(0))
        };
        if dense.meta.dtype != dtype {
            dense = then(Cast { dtype }.into(), dense)?;
        }
        if !dense.meta.is_contiguous() {
            dense = then(Copy.into(), dense)?;
        }
        let mut bytes = Vec::new();
        dense.block.save_to(dense.byte_range(), &mut bytes)?;
        Ok(bytes)
    }

    /// Writes a tensor's elements, which come in row-major order.
    fn overwrite(&self, view: &View, bytes: &[u8]) -> Result<()> {
        let mut turn = self.turn();
        if !view.meta.is_contiguous() {
            let meta = Meta::new(view.meta.dtype, view.meta.shape.clone());
            let dense = View::new(self.device(), meta);
            dense.block.write(bytes)?;
            return self.copy(&mut turn, &[dense], std::slice::from_ref(view));
        }
        if !view.covers_block() {
            view.block.to_touch()?;
        }
        view.block.touch();
        view.block.write_at(view.byte_range().start, bytes)
    }
}
