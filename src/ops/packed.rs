//! Operations on an input that lies in a layout which only their kernel knows, and what brings it
//! there: graphs that use it many times pack it once.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Cost, Family, Kernel, Kind, Meta, Metas, Packing, Width, exactly};
use crate::dtype::DType;
use crate::error::{Error, Result};

/// Brings an input of an operation into the layout of its kernel: w -> the packed one, opaque
/// bytes.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Pack {
    /// The operation that uses it.
    pub of: Box<Kind>,
    /// What that reads, then what it writes.
    pub io: Vec<Meta>,
    /// How many threads that uses.
    pub width: usize,
    /// Which of its inputs is packed.
    pub input: usize,
    /// Bytes of the input when it is packed.
    pub bytes: usize,
}

/// An operation of which one input is packed, by a [`Pack`] of the same metas; to the bit what it is
/// without.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Packed {
    /// The operation.
    pub of: Box<Kind>,
    /// Which of its inputs is packed.
    pub input: usize,
    /// What that was before.
    pub meta: Meta,
}

catalog!(Pack => "pack", Packed => "packed");

/// The two parts of an operation's kernel.
fn packing(op: &'static str, of: &Kind, io: &[&Meta], width: Width) -> Result<Packing> {
    let none = || Error::value(op, of.family().name(), "an operation that packs an input here");
    of.family().packing(io, width)?.ok_or_else(none)
}

impl Family for Pack {
    fn name(&self) -> &'static str {
        "pack"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [w] = exactly(self.name(), inputs)?;
        let want = || format!("input {} of {}", self.input, self.of.family().name());
        let fits = self.io.get(self.input) == Some(w);
        crate::ensure!(fits, Error::shape(self.name(), [&w.shape], want()));
        Ok(smallvec::smallvec![Meta::new(DType::UInt8, [self.bytes])])
    }

    fn cpu(&self, _: &[&Meta], _: Width) -> Result<Arc<dyn Kernel>> {
        let io: Vec<&Meta> = self.io.iter().collect();
        let packing = packing(self.name(), &self.of, &io, Width(self.width))?;
        let fits = (packing.input, packing.bytes) == (self.input, self.bytes);
        let got = || format!("input {} in {} bytes", self.input, self.bytes);
        let want = || format!("input {} in {} bytes", packing.input, packing.bytes);
        crate::ensure!(fits, Error::value(self.name(), got(), want()));
        Ok(packing.pack)
    }
}

impl Packed {
    /// Inputs and outputs as they are without packing.
    fn plain<'a>(&'a self, io: &[&'a Meta]) -> Vec<&'a Meta> {
        let mut plain = io.to_vec();
        plain[self.input] = &self.meta;
        plain
    }
}

impl Family for Packed {
    fn name(&self) -> &'static str {
        "packed"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let is_opaque =
            |w: &&Meta| w.dtype == DType::UInt8 && w.shape.rank() == 1 && w.is_contiguous();
        let fits = inputs.get(self.input).is_some_and(is_opaque);
        let want = || format!("opaque bytes as input {}", self.input);
        let shapes = inputs.iter().map(|meta| &meta.shape);
        crate::ensure!(fits, Error::shape(self.name(), shapes, want()));
        self.of.family().infer(&self.plain(inputs))
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        self.of.family().cost(&self.plain(io))
    }

    fn cpu(&self, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
        let packing = packing(self.name(), &self.of, &self.plain(io), width)?;
        let (got, want) = (io[self.input].bytes(), packing.bytes);
        let fits = packing.input == self.input && got == want;
        crate::ensure!(
            fits,
            Error::value(self.name(), format!("{got} bytes"), format!("{want} bytes"))
        );
        Ok(packing.rest)
    }
}

#[cfg(test)]
mod tests;
