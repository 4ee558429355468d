//! Replay: the kernels of a graph on bound memory, one after another or several at a time.
#![allow(unsafe_code)]

mod binding;
mod crew;
pub mod finite;
mod parallel;
mod patience;
mod serial;
mod sync;

use super::Graph;
use crate::error::Error;
use binding::Binding;
use parallel::Parallel;

/// A run that ended early.
#[derive(Debug, Clone)]
pub struct Stopped {
    /// The node that failed: of several the first in recorded order, so that a run by several
    /// threads answers what one by one thread would. Those before it have run.
    pub node: usize,
    /// One past the last node that may have run; more than one past `node` where others ran at
    /// the same time.
    pub end: usize,
    /// What it said.
    pub error: Error,
}

/// A graph with the addresses of all its places.
pub struct Bound {
    binding: Binding,
    parallel: Option<Parallel>,
}

impl Bound {
    /// Binds what lies in the arena, whose first byte is `arena`, aligned to 64.
    pub fn new(graph: &Graph, arena: *mut u8) -> Bound {
        let binding = Binding::new(graph, arena);
        Bound { binding, parallel: graph.schedule().map(Parallel::new) }
    }

    /// Says where a block outside of the arena is.
    pub fn bind(&mut self, block: u32, start: *mut u8) {
        self.binding.bind(block, start);
    }

    /// Where a block outside of the arena is; null where nothing was said.
    pub fn start(&self, block: u32) -> *mut u8 {
        self.binding.start(block)
    }

    /// Runs all nodes.
    ///
    /// # Errors
    /// [`Stopped`] at the first kernel that fails.
    ///
    /// # Safety
    /// As [`Bound::run_from`], with all nodes.
    pub unsafe fn run(&self) -> std::result::Result<(), Stopped> {
        // SAFETY: by the caller's promise.
        unsafe { self.run_from(0, self.binding.nodes()) }
    }

    /// Runs nodes `first..end`: in recorded order, but for the segments of a graph made for
    /// several threads ([`Graph::schedule`]) that lie in the range as a whole.
    ///
    /// # Errors
    /// [`Stopped`] at the first kernel that fails.
    ///
    /// # Safety
    /// The nodes before `first` have run. Every block outside of the arena that the nodes name is
    /// bound to memory of its size, the arena is memory of [`Graph::arena_bytes`], and nothing
    /// else touches them meanwhile. What is read was written, by a node or before the run.
    pub unsafe fn run_from(&self, first: usize, end: usize) -> std::result::Result<(), Stopped> {
        // SAFETY: by the caller's promise.
        unsafe {
            match &self.parallel {
                Some(parallel) => parallel.run(&self.binding, first..end),
                None => serial::run(&self.binding, first..end),
            }
        }
    }

    /// Has a node's kernel check the values of its inputs, which were there before the run.
    ///
    /// # Errors
    /// [`Stopped`] with what the kernel would say.
    ///
    /// # Safety
    /// What the kernel checks is bound to memory that nothing writes meanwhile.
    pub unsafe fn check(&self, node: usize) -> std::result::Result<(), Stopped> {
        // SAFETY: by the caller's promise.
        let done = unsafe { self.binding.check(node) };
        done.map_err(|error| self.binding.stopped(node, error))
    }
}

#[cfg(test)]
mod tests;
