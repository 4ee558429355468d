//! Operations on an input in a layout that only their kernel knows, and the operation that packs
//! it: graphs that use an input many times pack it once.

use serde::{Deserialize, Serialize};

use super::{Cost, Family, Kind, Meta, Metas, exactly};
use crate::dtype::DType;
use crate::error::{Error, Result};

/// Packs an input of an operation into the layout of its kernel: from w to opaque bytes.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Pack {
    /// The operation that uses it.
    pub of: Box<Kind>,
    /// Metas of that operation's inputs, then of its outputs.
    pub io: Vec<Meta>,
    /// How many threads that operation uses.
    pub width: usize,
    /// The index of the packed input.
    pub input: usize,
    /// Size in bytes of the packed input.
    pub bytes: usize,
}

/// An operation one of whose inputs is packed by a [`Pack`] of the same metas; bit-identical to the
/// operation without packing.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Packed {
    /// The operation.
    pub of: Box<Kind>,
    /// The index of the packed input.
    pub input: usize,
    /// The meta of that input before packing.
    pub meta: Meta,
}

catalog!(Pack => "pack", Packed => "packed");

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
}

impl Packed {
    /// Metas of the inputs and outputs without packing.
    pub fn plain<'a>(&'a self, io: &[&'a Meta]) -> Vec<&'a Meta> {
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

    fn in_place(&self) -> &'static [(usize, usize)] {
        self.of.family().in_place()
    }

    fn checked(&self) -> &'static [usize] {
        self.of.family().checked()
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        self.of.family().cost(&self.plain(io))
    }
}
