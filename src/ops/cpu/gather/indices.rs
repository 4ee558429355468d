//! Indices as a kernel finds them in input 1.
#![allow(unsafe_code)]

use crate::dtype::Element;
use crate::error::{Error, Result};
use crate::ops::cpu::walk::{Walk, dims};
use crate::ops::{Io, Meta};

/// How the indices lie, and what they may be.
pub struct Indices {
    name: &'static str,
    /// How many entries the indexed axis has.
    size: usize,
    walk: Walk<1>,
    /// Reads the index at a place.
    read: unsafe fn(*const u8, isize) -> i64,
}

impl Indices {
    /// `indices` into an axis of `size` entries, for errors of operation `name`.
    pub fn new(name: &'static str, size: usize, indices: &Meta) -> Self {
        let read = crate::dispatch!(indices.dtype, T => read_as::<T>);
        Indices { name, size, walk: Walk::new(dims([indices])), read }
    }

    /// How many indices there are.
    pub fn count(&self) -> usize {
        self.walk.elements()
    }

    /// How many entries the indexed axis has.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Hands the indices to `visit` row-major, counted from the front.
    ///
    /// # Errors
    /// [`Error::Index`] at the first one that is out of range.
    pub fn each(&self, io: &Io, mut visit: impl FnMut(i64)) -> Result<()> {
        let step = self.walk.inner().strides[0];
        for ([at], n) in self.walk.runs(0..self.count()) {
            for i in 0..n as isize {
                // SAFETY: the run lies within the indices.
                visit(self.entry(unsafe { (self.read)(io.input(1), at + i * step) })?);
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
        let size = self.size as i64;
        let entry = index + if index < 0 { size } else { 0 };
        let op = || self.name.into();
        crate::ensure!(
            (0..size).contains(&entry),
            Error::Index { op: op(), index, size: self.size }
        );
        Ok(entry)
    }
}

/// # Safety
/// The element at place `at` can be read.
unsafe fn read_as<T: Element>(from: *const u8, at: isize) -> i64 {
    // SAFETY: by the caller's promise.
    unsafe { *from.cast::<T>().offset(at) }.to_i64()
}
