//! The large allocations of memory in use, and the lines of the user's program that requested them.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, MutexGuard};

use rustc_hash::FxHashMap;

use super::Account;
use super::pool::Allocation;
use crate::error::{LiveTensor, locked};

/// Smaller allocations are not tracked: operations on them are too short to look up a line for.
pub const LARGE: usize = 256 << 10;

thread_local! {
    static LINE: RefCell<Option<Arc<str>>> = const { RefCell::new(None) };
}

/// A guard: while it lives, this thread's allocations are attributed to a line of the user's
/// program.
pub struct AtLine(Option<Arc<str>>);

impl AtLine {
    /// Attributes allocations to a line, if it is known.
    pub fn new(line: Option<Arc<str>>) -> Self {
        AtLine(LINE.replace(line))
    }
}

impl Drop for AtLine {
    fn drop(&mut self) {
        LINE.replace(self.0.take());
    }
}

/// See the module's documentation.
#[derive(Default)]
pub(super) struct Live(Mutex<FxHashMap<usize, Entry>>);

struct Entry {
    account: Account,
    wanted: usize,
    bytes: usize,
    line: Option<Arc<str>>,
}

impl Live {
    /// Records an allocation that was made for a request of `wanted` bytes.
    pub fn enter(&self, allocation: &Allocation, wanted: usize, account: Account) {
        let bytes = allocation.bytes();
        if bytes >= LARGE {
            let entry = Entry { account, wanted, bytes, line: LINE.with_borrow(Option::clone) };
            self.entries().insert(address(allocation), entry);
        }
    }

    /// Records that an allocation has moved to another account.
    pub fn set_account(&self, allocation: &Allocation, account: Account) {
        if allocation.bytes() >= LARGE
            && let Some(entry) = self.entries().get_mut(&address(allocation))
        {
            entry.account = account;
        }
    }

    /// Forgets an allocation that is returned to the pool.
    pub fn leave(&self, allocation: &Allocation) {
        if allocation.bytes() >= LARGE {
            self.entries().remove(&address(allocation));
        }
    }

    /// The tracked allocations in use.
    pub fn tensors(&self) -> Vec<LiveTensor> {
        let tensor = |entry: &Entry| LiveTensor {
            name: entry.account.name().into(),
            bytes: entry.bytes,
            line: entry.line.clone(),
        };
        self.entries().values().map(tensor).collect()
    }

    /// Bytes allocated beyond those requested, because sizes are rounded up.
    pub fn lost(&self) -> usize {
        self.entries().values().map(|entry| entry.bytes - entry.wanted).sum()
    }

    fn entries(&self) -> MutexGuard<'_, FxHashMap<usize, Entry>> {
        locked(&self.0)
    }
}

fn address(allocation: &Allocation) -> usize {
    allocation.pointer().addr().get()
}
