//! Checking the results of operations for NaNs and infinities.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;

// The numbers are in memory that the host can read.
use super::cpu::statistics::{is_finite, statistics};
use super::{Io, Prepared};
use crate::error::finite::{NotFinite, Statistics};
use crate::error::{Error, Result};
use crate::ops::Meta;

impl Prepared {
    /// Runs the kernel; an error if a result is not finite.
    ///
    /// # Errors
    /// Those of the kernel; [`Error::NotFinite`].
    ///
    /// # Safety
    /// The addresses point to tensors that fit the operation's metas and that nothing else accesses
    /// meanwhile.
    pub unsafe fn run_checked(&self, io: &Io) -> Result<()> {
        // SAFETY: by the caller's promise.
        let before = unsafe { Before::of(self, io) };
        self.kernel.run(io)?;
        // SAFETY: as above, and the kernel has written its outputs.
        unsafe { not_finite(self, io, before) }.map_or(Ok(()), Err)
    }
}

/// Statistics of the inputs that an operation overwrites, taken before it runs; the other inputs
/// can be examined afterwards.
struct Before(Vec<Option<Statistics>>);

impl Before {
    /// Examines the inputs that the operation is about to overwrite.
    ///
    /// # Safety
    /// The addresses point to tensors that fit the operation's metas and that nothing writes
    /// meanwhile.
    unsafe fn of(op: &Prepared, io: &Io) -> Before {
        let reach = |meta: &Meta, first: *const u8| {
            let (span, size) = (meta.span(), meta.dtype.size() as isize);
            let at = |place: isize| first.wrapping_offset(place * size).addr();
            at(span.start)..at(span.end)
        };
        let written: Vec<Range<usize>> = (op.outputs.iter().enumerate())
            .map(|(o, meta)| reach(meta, io.output::<u8>(o).cast_const()))
            .collect();
        let look = |(i, meta): (usize, &Arc<Meta>)| {
            let (first, range) = (io.input::<u8>(i), reach(meta, io.input(i)));
            let is_written = written.iter().any(|w| w.start < range.end && range.start < w.end);
            // SAFETY: by the caller's promise.
            is_written.then(|| unsafe { statistics(meta, first) })
        };
        Before(op.inputs.iter().enumerate().map(look).collect())
    }
}

/// The error if an operation that has just run has produced a NaN or an infinity.
///
/// # Safety
/// As [`Before::of`]; the operation has run since, and nothing else has written its tensors.
unsafe fn not_finite(op: &Prepared, io: &Io, before: Before) -> Option<Error> {
    // SAFETY: by the caller's promise.
    let is_finite = |o: usize| unsafe { is_finite(&op.outputs[o], io.output::<u8>(o)) };
    if (0..op.outputs.len()).all(is_finite) {
        return None;
    }
    let inputs = before.0.into_iter().enumerate().map(|(i, known)| {
        // SAFETY: by the caller's promise.
        known.unwrap_or_else(|| unsafe { statistics(&op.inputs[i], io.input(i)) })
    });
    // SAFETY: by the caller's promise.
    let output = |o: usize| unsafe { statistics(&op.outputs[o], io.output::<u8>(o)) };
    let report = NotFinite {
        operation: op.name(),
        line: None,
        inputs: inputs.collect(),
        outputs: (0..op.outputs.len()).map(output).collect(),
    };
    Some(Error::NotFinite { op: op.name().into(), report: Box::new(report) })
}

#[cfg(test)]
mod tests;
