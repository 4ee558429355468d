//! A parallel region: its chunks, and the first panic in them.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use super::arithmetic::Arithmetic;
use super::{Error, Result};
use crate::error::locked;

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Whether the calling thread is running a chunk of a region.
pub fn is_inside() -> bool {
    INSIDE.get()
}

/// Chunks to run, each exactly once.
pub struct Region<'a> {
    pub chunks: usize,
    body: &'a (dyn Fn(usize, usize) + Sync),
    /// The caller's.
    arithmetic: Arithmetic,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

impl<'a> Region<'a> {
    pub fn new(chunks: usize, body: &'a (dyn Fn(usize, usize) + Sync)) -> Self {
        Region { chunks, body, arithmetic: Arithmetic::current(), panic: Mutex::new(None) }
    }

    /// Runs the chunks that `next` names on the calling thread, which has this seat. Never unwinds.
    pub fn run(&self, seat: usize, next: impl FnMut() -> Option<usize>) {
        self.arithmetic.adopt();
        let outer = INSIDE.replace(true);
        std::iter::from_fn(next).for_each(|chunk| self.run_chunk(chunk, seat));
        INSIDE.set(outer);
    }

    /// Runs all chunks on the calling thread, in order.
    pub fn run_all(&self) {
        let mut chunks = 0..self.chunks;
        self.run(0, || chunks.next());
    }

    fn run_chunk(&self, chunk: usize, seat: usize) {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| (self.body)(chunk, seat))) {
            locked(&self.panic).get_or_insert(payload);
        }
    }

    /// The outcome of the region: the first panic, if any, as an error.
    pub fn finish(self) -> Result<()> {
        match self.panic.into_inner().unwrap_or_else(PoisonError::into_inner) {
            None => Ok(()),
            Some(payload) => Err(Error::panic("parallel", &*payload)),
        }
    }
}
