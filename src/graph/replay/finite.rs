//! Replay that checks every result for NaNs and infinities.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;

use super::{Bound, Stopped};
use crate::error::Error;
use crate::error::finite::{NotFinite, Statistics};
use crate::kernels::{Io, Prepared, is_finite, statistics};
use crate::ops::Meta;

impl Bound {
    /// Runs nodes in recorded order, up to the first one that produces a NaN or an infinity.
    ///
    /// # Errors
    /// [`Stopped`] at that node, with [`Error::NotFinite`], or at the first kernel that fails.
    ///
    /// # Safety
    /// As [`Bound::run_from`].
    pub unsafe fn run_checked(&self, nodes: Range<usize>) -> Result<(), Stopped> {
        nodes.into_iter().try_for_each(|node| {
            let op = self.binding.op(node);
            // SAFETY: by the caller's promise; no node runs meanwhile.
            let io = unsafe { self.binding.io(&self.binding.steps()[node]) };
            // SAFETY: as above.
            let before = unsafe { Before::of(op, &io) };
            // SAFETY: as above, and the nodes before have run.
            unsafe { self.run_from(node, node + 1) }?;
            // SAFETY: the node has written its outputs.
            let found = unsafe { not_finite(op, &io, before) };
            found.map_or(Ok(()), |error| Err(Stopped { node, end: node + 1, error }))
        })
    }
}

/// Statistics of the inputs that an operation overwrites, taken before it runs; the other inputs
/// can be examined afterwards.
pub struct Before(Vec<Option<Statistics>>);

impl Before {
    /// Examines the inputs that the operation is about to overwrite.
    ///
    /// # Safety
    /// The addresses point to tensors that fit the operation's metas and that nothing writes
    /// meanwhile.
    pub unsafe fn of(op: &Prepared, io: &Io) -> Before {
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
pub unsafe fn not_finite(op: &Prepared, io: &Io, before: Before) -> Option<Error> {
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
