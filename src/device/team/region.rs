//! A parallel region: its parts, and the first panic in them.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use super::{Error, Result};

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Whether the calling thread is running a part of a region.
pub fn is_inside() -> bool {
    INSIDE.get()
}

/// Parts to run, each exactly once.
pub struct Region<'a> {
    pub parts: usize,
    body: &'a (dyn Fn(usize) + Sync),
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

impl<'a> Region<'a> {
    pub fn new(parts: usize, body: &'a (dyn Fn(usize) + Sync)) -> Self {
        Region { parts, body, panic: Mutex::new(None) }
    }

    /// Runs the share of thread `thread` out of the `threads` that were granted. Never unwinds.
    pub fn run(&self, thread: usize, threads: usize) {
        let outer = INSIDE.replace(true);
        (thread..self.parts).step_by(threads).for_each(|part| self.run_part(part));
        INSIDE.set(outer);
    }

    fn run_part(&self, part: usize) {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| (self.body)(part))) {
            self.panic.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(payload);
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
