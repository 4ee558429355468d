//! Indices read from an input: of entries that are gathered, or labels.
#![allow(unsafe_code)]

use std::sync::Arc;

use crate::dtype::Element;
use crate::error::{Error, Result};
use crate::kernels::cpu::strided::walk::{Walk, dims};
use crate::kernels::{Io, Kernel};
use crate::ops::Meta;

/// The layout of the indices, and their valid range.
pub struct Indices {
    name: &'static str,
    /// The number of the input that holds them.
    input: usize,
    /// The number of entries of the indexed axis, if the range is to be checked.
    size: Option<usize>,
    walk: Walk<1>,
    read: unsafe fn(*const u8, isize) -> Result<i64, f64>,
    /// What an index must be, for the error message.
    want: &'static str,
    /// Whether negative ones count from the end.
    wraps: bool,
}

impl Indices {
    /// The indices in input `input`, into an axis of `size` entries; errors name operation `name`.
    pub fn new(name: &'static str, input: usize, size: Option<usize>, indices: &Meta) -> Self {
        let (walk, read) =
            (Walk::new(dims([indices])), crate::dispatch!(indices.dtype, T => read::<T>));
        Indices { name, input, size, walk, read, want: "an integer as index", wraps: true }
    }

    /// The same, of which negative ones count from the end, or are out of range.
    pub fn wrapping(self, wraps: bool) -> Self {
        Indices { wraps, ..self }
    }

    /// Labels of `classes` classes.
    pub fn labels(name: &'static str, input: usize, classes: usize, labels: &Meta) -> Self {
        let want = "a class index without a fraction";
        Indices { want, wraps: false, ..Indices::new(name, input, Some(classes), labels) }
    }

    /// The number of indices.
    pub fn count(&self) -> usize {
        self.walk.elements()
    }

    /// Passes the entries that the indices refer to, in row-major order, to `visit`.
    ///
    /// # Errors
    /// [`Error::Index`] or [`Error::Value`] at the first index that is out of range or fractional.
    pub fn each(&self, io: &Io, mut visit: impl FnMut(i64)) -> Result<()> {
        let step = self.walk.inner().strides[0];
        for ([at], n) in self.walk.runs(0..self.count()) {
            for i in 0..n as isize {
                // SAFETY: the run is within the indices.
                let index = unsafe { (self.read)(io.input(self.input), at + i * step) };
                visit(self.entry(index.map_err(|got| Error::value(self.name, got, self.want))?)?);
            }
        }
        Ok(())
    }

    /// Writes the entries in row-major order.
    ///
    /// # Errors
    /// As [`Indices::each`].
    pub fn read(&self, io: &Io, to: &mut [i64]) -> Result<()> {
        let mut to = to.iter_mut();
        self.each(io, |index| *to.next().expect("room for all indices") = index)
    }

    /// The entry that an index refers to.
    fn entry(&self, index: i64) -> Result<i64> {
        let Some(size) = self.size else { return Ok(index) };
        let entry = index + if self.wraps && index < 0 { size as i64 } else { 0 };
        let op = || self.name.into();
        crate::ensure!((0..size as i64).contains(&entry), Error::Index { op: op(), index, size });
        Ok(entry)
    }
}

/// The element at an offset, or as an error the value that is not an int64.
///
/// # Safety
/// The element can be read.
unsafe fn read<T: Element>(from: *const u8, at: isize) -> Result<i64, f64> {
    // SAFETY: by the caller's promise.
    let element = unsafe { *from.cast::<T>().offset(at) };
    let value = element.to_f64();
    // Values too large for an int64 would be clamped to its range.
    let is_whole = value.fract() == 0.0 && value.abs() < i64::MAX as f64;
    if T::DTYPE.is_float() && !is_whole { Err(value) } else { Ok(element.to_i64()) }
}

/// A kernel that gets the entries that indices refer to, once all are valid.
struct Indexed<F> {
    indices: Indices,
    /// Bytes of scratch memory of `run`, a multiple of 8; those of the entries follow.
    scratch: usize,
    run: F,
}

/// A kernel that needs `scratch` bytes, a multiple of 8, and runs on the entries that indices refer
/// to.
pub fn indexed(
    indices: Indices,
    scratch: usize,
    run: impl Fn(&Io, &[i64]) -> Result<()> + Send + Sync + 'static,
) -> Arc<dyn Kernel> {
    Arc::new(Indexed { indices, scratch, run })
}

impl<F: Fn(&Io, &[i64]) -> Result<()> + Send + Sync> Kernel for Indexed<F> {
    fn scratch(&self) -> usize {
        self.scratch + self.indices.count() * size_of::<i64>()
    }

    fn check(&self, io: &Io) -> Result<()> {
        self.indices.each(io, |_| ())
    }

    fn run(&self, io: &Io) -> Result<()> {
        // SAFETY: the scratch memory was requested, and `run` uses only what is before.
        let entries = unsafe {
            let at = io.scratch::<u8>().add(self.scratch).cast();
            std::slice::from_raw_parts_mut(at, self.indices.count())
        };
        self.indices.read(io, entries)?;
        (self.run)(io, entries)
    }
}
