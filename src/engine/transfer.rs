//! Copies between devices, by way of the host.

use smallvec::smallvec;

use super::record::{self, Mode};
use super::{Engine, checks, of};
use crate::error::{Error, Result};
use crate::ops::copy::Copy;
use crate::ops::{Call, Kind, Meta, View};

/// Whether this copies, and converts, the elements of a tensor into one on another device.
pub fn is_transfer(kind: &Kind, inputs: &[View], outputs: &[View]) -> bool {
    let copies = matches!(kind, Kind::Copy(_) | Kind::Cast(_) | Kind::Convert(_));
    let ids = |views: &[View]| views.first().map(|view| view.block.device().id());
    copies && (inputs.len(), outputs.len()) == (1, 1) && ids(inputs) != ids(outputs)
}

/// Copies the elements of a tensor into one on another device, converted where the former is.
/// Nobody holds a turn.
///
/// # Errors
/// [`Error::Graph`] while a step is recorded, which is on one device; those of the engines.
pub(super) fn transfer(kind: &Kind, from: &View, to: &View) -> Result<()> {
    let (given, name) = (std::slice::from_ref(from), kind.family().name());
    checks::outputs(&Call::new(kind, given)?, name, given, std::slice::from_ref(to))?;
    let message = || {
        let (a, b) = (from.block.device(), to.block.device());
        format!("a step on one device cannot copy from {a:?} to {b:?}: pass an argument instead")
    };
    let records = record::mode() == Mode::Record;
    crate::ensure!(!records, Error::graph("copy", message()));
    record::settle();
    let bytes = of(from.block.device())?.elements(kind, from)?;
    of(to.block.device())?.overwrite(to, &bytes)
}

impl Engine {
    /// What a copy or conversion makes of the elements of a tensor, in row-major order.
    fn elements(&self, kind: &Kind, view: &View) -> Result<Vec<u8>> {
        let (mut turn, mut dense) = (self.turn(), view.clone());
        let mut then = |kind: Kind, view: View| {
            self.fresh(&mut turn, &kind, &mut smallvec![view]).map(|mut made| made.remove(0))
        };
        if !matches!(kind, Kind::Copy(_)) {
            dense = then(kind.clone(), dense)?;
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
