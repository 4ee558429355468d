//! Replay: runs the kernels of a graph on bound memory, serially or several at a time.
#![allow(unsafe_code)]

mod binding;
mod captured;
mod crew;
mod parallel;
mod patience;
pub mod schedule;
mod sync;

use std::ops::Range;

use crate::error::{Error, Result};
use crate::graph::Graph;
use binding::Binding;
use captured::Captures;
use parallel::ParallelRun;

/// A run that ended early.
#[derive(Debug, Clone)]
pub struct Stopped {
    /// The node that failed, the first in recorded order if several did, so that serial and
    /// parallel runs report the same one. All nodes before it have run.
    pub node: usize,
    /// One past the last node that may have run; more than one past `node` if others ran
    /// concurrently.
    pub end: usize,
    /// Its error.
    pub error: Error,
}

/// A graph with the addresses of all its places.
pub struct Bound {
    binding: Binding,
    parallel: Option<ParallelRun>,
    captures: Option<Captures>,
}

impl Bound {
    /// Binds the blocks in the arena, which starts at `arena`, aligned to 64 bytes.
    pub fn new(graph: &Graph, arena: *mut u8) -> Bound {
        let binding = Binding::new(graph, arena);
        let captures = Captures::new(graph);
        Bound { binding, parallel: graph.schedule().map(ParallelRun::new), captures }
    }

    /// Sets the address of a block outside the arena.
    pub fn bind(&mut self, block: u32, start: *mut u8) {
        self.binding.bind(block, start);
    }

    /// Runs nodes in recorded order, up to the first one that produces a NaN or an infinity.
    ///
    /// # Errors
    /// [`Stopped`] at that node, with [`crate::Error::NotFinite`], or at the first kernel that fails.
    ///
    /// # Safety
    /// As [`Bound::run_from`].
    pub unsafe fn run_checked(&self, nodes: Range<usize>) -> Result<(), Stopped> {
        // SAFETY: by the caller's promise.
        unsafe { self.binding.run_all::<true>(nodes) }
    }

    /// Runs all nodes.
    ///
    /// # Errors
    /// [`Stopped`] at the first kernel that fails.
    ///
    /// # Safety
    /// As [`Bound::run_from`], with all nodes.
    pub unsafe fn run(&self) -> Result<(), Stopped> {
        // SAFETY: by the caller's promise.
        unsafe { self.run_from(0, self.binding.nodes()) }
    }

    /// Runs nodes `first..end` in recorded order, except that segments ([`Graph::segments`]) that
    /// lie completely within the range run in parallel.
    ///
    /// # Errors
    /// [`Stopped`] at the first kernel that fails.
    ///
    /// # Safety
    /// The nodes before `first` have run. Every block outside the arena that the nodes use is bound
    /// to memory of its size, the arena has [`Graph::arena_bytes`], and nothing else touches this
    /// memory meanwhile. All memory that is read was written, by a node or before the run. What can
    /// be checked before a run ([`Graph::is_checked_before`]) has passed [`Bound::check`].
    pub unsafe fn run_from(&self, first: usize, end: usize) -> Result<(), Stopped> {
        // SAFETY: by the caller's promise.
        unsafe {
            match (&self.captures, &self.parallel) {
                (Some(captures), _) => captures.run(&self.binding, first..end),
                (None, Some(parallel)) => parallel.run(&self.binding, first..end),
                (None, None) => self.binding.run_all::<false>(first..end),
            }
        }
    }

    /// Lets a node's kernel check the values of its inputs, which must have been written before the
    /// run.
    ///
    /// # Errors
    /// [`Stopped`] with the error that the kernel would return.
    ///
    /// # Safety
    /// The inputs that the kernel checks are bound to memory that nothing writes meanwhile.
    pub unsafe fn check(&self, node: usize) -> Result<(), Stopped> {
        // SAFETY: by the caller's promise.
        let done = unsafe { self.binding.check(node) };
        done.map_err(|error| self.binding.stopped(node, error))
    }
}

#[cfg(test)]
mod tests;
