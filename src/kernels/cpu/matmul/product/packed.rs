//! Products whose left factor is first copied into contiguous memory.
#![allow(unsafe_code)]

use std::sync::Arc;

use crate::device::ALIGNMENT;
use crate::error::Result;
use crate::kernels::cpu::copy::cast;
use crate::kernels::{Io, Kernel, Width};
use crate::ops::Meta;

/// The product of `io` = a, b, y, on one thread, with a copied in column-major order.
///
/// # Errors
/// [`crate::Error::Library`].
pub fn prepare([a, b, y]: [&Meta; 3]) -> Result<Arc<dyn Kernel>> {
    let rows = a.shape[0] as isize;
    let packed = Meta { strides: [1, rows][..].into(), ..a.clone() };
    Ok(Arc::new(Packed {
        bytes: packed.bytes().next_multiple_of(ALIGNMENT),
        pack: cast(a, &packed, Width::ONE),
        multiply: super::whole([&packed, b, y], None)?,
    }))
}

struct Packed {
    pack: Arc<dyn Kernel>,
    /// Bytes of the copy.
    bytes: usize,
    multiply: Arc<dyn Kernel>,
}

impl Kernel for Packed {
    fn scratch(&self) -> usize {
        self.bytes + self.multiply.scratch().max(self.pack.scratch())
    }

    fn threads(&self) -> usize {
        self.multiply.threads().max(self.pack.threads())
    }

    fn run(&self, io: &Io) -> Result<()> {
        let (packed, rest) = (io.scratch::<u8>(), io.scratch::<u8>().wrapping_add(self.bytes));
        let factors = [packed.cast_const(), io.input(1)];
        // SAFETY: `io` is what this was prepared for, with as much scratch memory as requested.
        unsafe {
            self.pack.run(&Io::new(&[io.input(0)], &[packed], rest))?;
            self.multiply.run(&Io::new(&factors, &[io.output(0)], rest))
        }
    }
}
