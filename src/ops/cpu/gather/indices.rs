//! Indices as a kernel finds them in an input.
#![allow(unsafe_code)]

use crate::error::{Error, Result};
use crate::ops::cpu::walk::{Walk, dims};
use crate::ops::cpu::whole::{self, Read};
use crate::ops::{Io, Meta};

/// How the indices lie, and what they may be.
pub struct Indices {
    name: &'static str,
    /// Which input they are.
    input: usize,
    /// How many entries the indexed axis has, if that matters.
    size: Option<usize>,
    walk: Walk<1>,
    read: Read,
}

impl Indices {
    /// The indices that are input `input`, into an axis of `size` entries, for errors of operation
    /// `name`.
    pub fn new(name: &'static str, input: usize, size: Option<usize>, indices: &Meta) -> Self {
        let read = whole::reader(indices.dtype);
        Indices { name, input, size, walk: Walk::new(dims([indices])), read }
    }

    /// How many indices there are.
    pub fn count(&self) -> usize {
        self.walk.elements()
    }

    /// Hands the indices to `visit` row-major, counted from the front.
    ///
    /// # Errors
    /// At the first one that is out of range or has a fraction: [`Error::Index`], [`Error::Value`].
    pub fn each(&self, io: &Io, mut visit: impl FnMut(i64)) -> Result<()> {
        let step = self.walk.inner().strides[0];
        for ([at], n) in self.walk.runs(0..self.count()) {
            for i in 0..n as isize {
                // SAFETY: the run lies within the indices.
                let index = unsafe { (self.read)(io.input(self.input), at + i * step) };
                let want = "an integer as index";
                visit(self.entry(index.map_err(|got| Error::value(self.name, got, want))?)?);
            }
        }
        Ok(())
    }

    /// Writes the indices row-major, counted from the front.
    pub fn read(&self, io: &Io, to: &mut [i64]) -> Result<()> {
        let mut to = to.iter_mut();
        self.each(io, |index| *to.next().expect("room for all indices") = index)
    }

    /// The entry that an index names.
    fn entry(&self, index: i64) -> Result<i64> {
        let Some(size) = self.size else { return Ok(index) };
        let entry = index + if index < 0 { size as i64 } else { 0 };
        let op = || self.name.into();
        crate::ensure!((0..size as i64).contains(&entry), Error::Index { op: op(), index, size });
        Ok(entry)
    }
}
