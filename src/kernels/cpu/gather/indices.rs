//! Indices read from an input of a kernel.
#![allow(unsafe_code)]

use crate::error::{Error, Result};
use crate::kernels::Io;
use crate::kernels::cpu::walk::{Walk, dims};
use crate::kernels::cpu::whole::{self, Read};
use crate::ops::Meta;

/// The layout of the indices, and their valid range.
pub struct Indices {
    name: &'static str,
    /// The number of the input that holds them.
    input: usize,
    /// The number of entries of the indexed axis, if the range is to be checked.
    size: Option<usize>,
    walk: Walk<1>,
    read: Read,
}

impl Indices {
    /// The indices in input `input`, into an axis of `size` entries; errors name operation `name`.
    pub fn new(name: &'static str, input: usize, size: Option<usize>, indices: &Meta) -> Self {
        let read = whole::reader(indices.dtype);
        Indices { name, input, size, walk: Walk::new(dims([indices])), read }
    }

    /// The number of indices.
    pub fn count(&self) -> usize {
        self.walk.elements()
    }

    /// Passes the indices to `visit` in row-major order, with negative ones counted from the end.
    ///
    /// # Errors
    /// [`Error::Index`] or [`Error::Value`] at the first index that is out of range or fractional.
    pub fn each(&self, io: &Io, mut visit: impl FnMut(i64)) -> Result<()> {
        let step = self.walk.inner().strides[0];
        for ([at], n) in self.walk.runs(0..self.count()) {
            for i in 0..n as isize {
                // SAFETY: the run is within the indices.
                let index = unsafe { (self.read)(io.input(self.input), at + i * step) };
                let want = "an integer as index";
                visit(self.entry(index.map_err(|got| Error::value(self.name, got, want))?)?);
            }
        }
        Ok(())
    }

    /// Writes the indices in row-major order, with negative ones counted from the end.
    pub fn read(&self, io: &Io, to: &mut [i64]) -> Result<()> {
        let mut to = to.iter_mut();
        self.each(io, |index| *to.next().expect("room for all indices") = index)
    }

    /// The entry that an index refers to.
    fn entry(&self, index: i64) -> Result<i64> {
        let Some(size) = self.size else { return Ok(index) };
        let entry = index + if index < 0 { size as i64 } else { 0 };
        let op = || self.name.into();
        crate::ensure!((0..size as i64).contains(&entry), Error::Index { op: op(), index, size });
        Ok(entry)
    }
}
