//! Writing out the positions that indices refer to.
#![allow(unsafe_code)]

use std::sync::Arc;

use super::Indices;
use crate::error::Result;
use crate::kernels::{Io, Kernel};

/// Prepares indices -> int64 positions, row-major.
pub fn places(indices: Indices) -> Arc<dyn Kernel> {
    Arc::new(Places { indices })
}

struct Places {
    indices: Indices,
}

impl Kernel for Places {
    fn check(&self, io: &Io) -> Result<()> {
        self.indices.each(io, |_| ())
    }

    fn run(&self, io: &Io) -> Result<()> {
        self.check(io)?;
        // SAFETY: the output has an element for each index, and shares no memory with them.
        let to = unsafe { io.write::<i64>(0, self.indices.count()) };
        self.indices.read(io, to)
    }
}
