//! Indices read from an input: of entries that are gathered, or labels.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;

use crate::device::team;
use crate::dtype::Element;
use crate::error::{Error, Result};
use crate::kernels::cpu::strided::walk::{Walk, dims};
use crate::kernels::{Io, Kernel, Width};
use crate::ops::Meta;

/// The number of indices that are looked at together, and the fewest that a thread takes at once.
const CHUNK: usize = 256;
const GRAIN: usize = 8192;

/// Converts elements from an address on, a step apart, until one is no int64: the error is its place
/// and value.
type Convert = unsafe fn(*const u8, isize, isize, &mut [i64]) -> Result<(), (usize, f64)>;

/// The layout of the indices, and their valid range.
pub struct Indices {
    name: &'static str,
    /// The number of the input that holds them.
    input: usize,
    /// The number of entries of the indexed axis, if the range is to be checked.
    size: Option<usize>,
    walk: Walk<1>,
    convert: Convert,
    /// What an index must be, for the error message.
    want: &'static str,
    /// Whether negative ones count from the end.
    wraps: bool,
    /// One that stands for no entry, and is valid.
    ignored: Option<i64>,
}

impl Indices {
    /// The indices in input `input`, into an axis of `size` entries; errors name operation `name`.
    pub fn new(name: &'static str, input: usize, size: Option<usize>, indices: &Meta) -> Self {
        let (walk, convert) =
            (Walk::new(dims([indices])), crate::dispatch!(indices.dtype, T => convert::<T>));
        Indices {
            name,
            input,
            size,
            walk,
            convert,
            want: "an integer as index",
            wraps: true,
            ignored: None,
        }
    }

    /// The same, of which negative ones count from the end, or are out of range.
    pub fn wrapping(self, wraps: bool) -> Self {
        Indices { wraps, ..self }
    }

    /// Labels of `classes` classes, or `ignored`.
    pub fn labels(
        name: &'static str,
        input: usize,
        classes: usize,
        ignored: Option<i64>,
        labels: &Meta,
    ) -> Self {
        let want = "a class index without a fraction";
        Indices { want, wraps: false, ignored, ..Indices::new(name, input, Some(classes), labels) }
    }

    /// The number of indices.
    pub fn count(&self) -> usize {
        self.walk.elements()
    }

    /// Checks that all indices are valid.
    ///
    /// # Errors
    /// [`Error::Index`] or [`Error::Value`] for the first index that is out of range or fractional.
    pub fn check(&self, io: &Io, width: usize) -> Result<()> {
        team::each_range(self.count(), GRAIN, width, |range, _| self.each(io, range, |_| ()))
    }

    /// Passes the entries that a range of the indices, in row-major order, refers to, to `visit`,
    /// some at a time.
    ///
    /// # Errors
    /// As [`Indices::check`].
    pub fn each(&self, io: &Io, range: Range<usize>, mut visit: impl FnMut(&[i64])) -> Result<()> {
        let mut held = [0; CHUNK];
        for start in range.clone().step_by(CHUNK) {
            let part = start..range.end.min(start + CHUNK);
            let held = &mut held[..part.len()];
            self.read(io, part, held)?;
            visit(held);
        }
        Ok(())
    }

    /// Writes the entries in row-major order.
    ///
    /// # Safety
    /// As many can be written, and nobody else reads or writes them.
    ///
    /// # Errors
    /// As [`Indices::check`].
    pub unsafe fn write(
        &self,
        io: &Io,
        width: usize,
        to: impl Fn() -> *mut i64 + Sync,
    ) -> Result<()> {
        team::each_range(self.count(), GRAIN, width, |range, _| {
            // SAFETY: by the caller's promise; the parts are disjoint.
            let to = unsafe { std::slice::from_raw_parts_mut(to().add(range.start), range.len()) };
            self.read(io, range, to)
        })
    }

    fn read(&self, io: &Io, range: Range<usize>, to: &mut [i64]) -> Result<()> {
        let (from, step) = (io.input::<u8>(self.input), self.walk.inner().strides[0]);
        let mut rest = &mut *to;
        let mut done = 0;
        for ([at], n) in self.walk.runs(range) {
            let (here, after) = std::mem::take(&mut rest).split_at_mut(n);
            // SAFETY: the run is within the indices.
            if let Err((good, got)) = unsafe { (self.convert)(from, at, step, here) } {
                self.wrap(&mut to[..done + good])?;
                return Err(Error::value(self.name, got, self.want));
            }
            (rest, done) = (after, done + n);
        }
        self.wrap(to)
    }

    /// The entries that indices refer to.
    fn wrap(&self, indices: &mut [i64]) -> Result<()> {
        let Some(size) = self.size else { return Ok(()) };
        if are_within(indices, size) {
            return Ok(());
        }
        let from_end = if self.wraps { size as i64 } else { 0 };
        let outside = |entry| (entry as u64 >= size as u64) & (Some(entry) != self.ignored);
        let mut is_outside = false;
        for index in indices.iter_mut() {
            *index += if *index < 0 { from_end } else { 0 };
            is_outside |= outside(*index);
        }
        let Some(&entry) = indices.iter().find(|&&entry| is_outside && outside(entry)) else {
            return Ok(());
        };
        let index = if entry < 0 { entry - from_end } else { entry };
        Err(Error::Index { op: self.name.into(), index, size })
    }
}

/// Whether all entries are from 0 on and below `size`: the sign of a bit pattern that is negative
/// unless they are, which all instruction sets find for several at a time.
pub fn are_within(entries: &[i64], size: usize) -> bool {
    let last = size as i64 - 1;
    entries.iter().fold(0, |signs, &entry| signs | entry | last.wrapping_sub(entry)) >= 0
}

/// See [`Convert`].
///
/// # Safety
/// The elements can be read.
unsafe fn convert<T: Element>(
    from: *const u8,
    at: isize,
    step: isize,
    to: &mut [i64],
) -> Result<(), (usize, f64)> {
    let from = from.cast::<T>().wrapping_offset(at);
    // SAFETY: by the caller's promise.
    let element = |i: usize, step: isize| unsafe { *from.offset(i as isize * step) };
    if T::DTYPE.is_float() {
        for (i, to) in to.iter_mut().enumerate() {
            let value = element(i, step).to_f64();
            // Values too large for an int64 would be clamped to its range.
            let is_whole = value.fract() == 0.0 && value.abs() < i64::MAX as f64;
            *to = if is_whole { value as i64 } else { return Err((i, value)) };
        }
    } else if step == 1 {
        // A constant step, so that the loop is vectorised.
        to.iter_mut().enumerate().for_each(|(i, to)| *to = element(i, 1).to_i64());
    } else {
        to.iter_mut().enumerate().for_each(|(i, to)| *to = element(i, step).to_i64());
    }
    Ok(())
}

/// A kernel that gets the entries that indices refer to, once all are valid.
struct Indexed<F> {
    indices: Indices,
    width: usize,
    /// Bytes of scratch memory of `run`, a multiple of 8; those of the entries follow.
    scratch: usize,
    run: F,
}

/// A kernel that needs `scratch` bytes, a multiple of 8, and runs on the entries that indices refer
/// to.
pub fn indexed(
    indices: Indices,
    Width(width): Width,
    scratch: usize,
    run: impl Fn(&Io, &[i64]) -> Result<()> + Send + Sync + 'static,
) -> Arc<dyn Kernel> {
    Arc::new(Indexed { indices, width, scratch, run })
}

impl<F: Fn(&Io, &[i64]) -> Result<()> + Send + Sync> Kernel for Indexed<F> {
    fn scratch(&self) -> usize {
        self.scratch + self.indices.count() * size_of::<i64>()
    }

    fn check(&self, io: &Io) -> Result<()> {
        self.indices.check(io, self.width)
    }

    fn run(&self, io: &Io) -> Result<()> {
        if self.indices.count() == 0 {
            return (self.run)(io, &[]); // there may be no scratch memory
        }
        // SAFETY: the scratch memory was requested, and `run` uses only what is before.
        let entries = || unsafe { io.scratch::<u8>().add(self.scratch).cast::<i64>() };
        // SAFETY: as above; nobody else uses it before all are written.
        unsafe {
            self.indices.write(io, self.width, entries)?;
            (self.run)(io, std::slice::from_raw_parts(entries(), self.indices.count()))
        }
    }
}
