//! A fixed range of reserved addresses, whose pages are committed and released on demand.
#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering::*};
use std::sync::{Arc, Mutex, MutexGuard};

use super::pages::{LARGE_PAGE, PAGE};
use super::{Account, Backend, Device};
use crate::error::{Result, locked};

/// Addresses reserved for planned memory, backed up to the height that its users need.
pub struct Range {
    device: Arc<Device>,
    start: NonNull<u8>,
    bytes: usize,
    /// How many of the first bytes are backed. Changed under the lock of `heights`.
    backed: AtomicUsize,
    /// The number of bytes that each user needs.
    heights: Mutex<Vec<usize>>,
}

// SAFETY: a range is only addresses; whoever runs owns the contents.
unsafe impl Send for Range {}
// SAFETY: as above; mutable state is behind a lock.
unsafe impl Sync for Range {}

impl Range {
    /// Reserves as many addresses as the machine has memory, or as many as the system grants.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`] if the system grants none.
    pub fn new(device: &Arc<Device>) -> Result<Self> {
        let backend = device.pool().backend();
        // If address space is limited, leave half of it to the rest of the process.
        let most = backend.total().min(backend.addresses() / 2);
        let mut bytes = most.next_multiple_of(LARGE_PAGE);
        loop {
            if let Some(start) = backend.reserve(bytes) {
                let (device, backed, heights) = (device.clone(), 0.into(), Mutex::default());
                return Ok(Range { device, start, bytes, backed, heights });
            }
            crate::ensure!(bytes > 16 * LARGE_PAGE, device.pool().out_of_memory("arena", bytes));
            bytes = (bytes / 2).next_multiple_of(LARGE_PAGE);
        }
    }

    /// The first address.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Backs the first `height` bytes with memory, unless they are already backed.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`] if the machine or the range does not have that many.
    pub fn back(&self, height: usize) -> Result<()> {
        if height <= self.backed.load(Acquire) {
            return Ok(());
        }
        let _heights = self.heights();
        self.grow(height)
    }

    /// Registers a user of the first `height` bytes, and backs them with memory.
    ///
    /// # Errors
    /// As [`Range::back`].
    pub fn enter(&self, height: usize) -> Result<()> {
        let mut heights = self.heights();
        self.grow(height)?;
        heights.push(height);
        Ok(())
    }

    /// Unregisters a user, and releases what only that user needed.
    pub fn leave(&self, height: usize) {
        let mut heights = self.heights();
        if let Some(place) = heights.iter().position(|h| *h == height) {
            heights.swap_remove(place);
        }
        let needed = heights.iter().copied().max().unwrap_or(0).next_multiple_of(PAGE);
        self.shrink(needed);
    }

    /// Releases all memory, even what users need: each calls [`Range::back`] before it runs again.
    /// The caller must have exclusive access to the contents. Returns the number of bytes released.
    pub fn trim(&self) -> usize {
        let _heights = self.heights();
        self.shrink(0)
    }

    /// Fills the first bytes with a pattern that is NaN in every float type. The caller must have
    /// exclusive access to them.
    pub fn poison(&self, bytes: usize) {
        let bytes = bytes.min(self.backed.load(Acquire));
        // SAFETY: this many bytes are backed, and nobody else uses them.
        unsafe { self.backend().fill(self.start, 0xff, bytes) };
    }

    /// Backs the first `height` bytes, unless they are already backed. The caller holds the lock.
    fn grow(&self, height: usize) -> Result<()> {
        let backed = self.backed.load(Relaxed);
        let more = height.next_multiple_of(PAGE).saturating_sub(backed);
        if more == 0 {
            return Ok(());
        }
        let pool = self.device.pool();
        let refused = || pool.out_of_memory("arena", height);
        crate::ensure!(height <= self.bytes && pool.can_fill(more), refused());
        // SAFETY: the pages are in the range and not yet backed.
        let granted = unsafe { self.backend().commit(self.start.add(backed), more) };
        crate::ensure!(granted, refused());
        pool.ledger().charge(Account::Arena, more);
        self.backed.store(backed + more, Release);
        Ok(())
    }

    /// Releases the pages beyond the first `needed` bytes; returns how many bytes that is. The
    /// caller holds the lock.
    fn shrink(&self, needed: usize) -> usize {
        let less = self.backed.load(Relaxed).saturating_sub(needed);
        if less == 0 {
            return 0;
        }
        // SAFETY: the pages are in the range, and nobody uses them any more.
        unsafe { self.backend().decommit(self.start.add(needed), less) };
        self.device.ledger().release(Account::Arena, less);
        self.backed.store(needed, Release);
        less
    }

    fn backend(&self) -> &dyn Backend {
        self.device.pool().backend()
    }

    fn heights(&self) -> MutexGuard<'_, Vec<usize>> {
        locked(&self.heights)
    }
}

impl Drop for Range {
    fn drop(&mut self) {
        // SAFETY: the range was reserved with this size, and its users are gone.
        unsafe { self.backend().unreserve(self.start, self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::cpu;
    use crate::error::Error;

    #[test]
    fn memory_comes_with_the_highest_user_and_goes_with_it() {
        let device = cpu::fresh();
        let range = Range::new(&device).unwrap();
        let arena = || device.ledger().balance(Account::Arena);
        range.enter(3 * PAGE).unwrap();
        range.enter(PAGE - 1).unwrap();
        assert_eq!(arena(), 3 * PAGE);
        // SAFETY: three pages are backed.
        unsafe { range.start().add(3 * PAGE - 1).write(7) };
        range.leave(3 * PAGE);
        assert_eq!(arena(), PAGE);
        range.enter(2 * PAGE).unwrap();
        // SAFETY: two pages are backed, the second one newly.
        assert_eq!(unsafe { range.start().add(2 * PAGE - 1).read() }, 0);
        range.leave(PAGE - 1);
        range.leave(2 * PAGE);
        assert_eq!(arena(), 0);
    }

    #[test]
    fn what_was_trimmed_is_backed_anew() {
        let device = cpu::fresh();
        let range = Range::new(&device).unwrap();
        let arena = || device.ledger().balance(Account::Arena);
        range.enter(3 * PAGE).unwrap();
        // SAFETY: three pages are backed.
        unsafe { range.start().write(7) };
        assert_eq!((range.trim(), arena(), range.trim()), (3 * PAGE, 0, 0));
        range.enter(PAGE).unwrap();
        assert_eq!(arena(), PAGE, "only what somebody is about to use");
        // SAFETY: one page is backed.
        assert_eq!(unsafe { range.start().read() }, 0);
        range.back(3 * PAGE).unwrap();
        range.back(PAGE).unwrap();
        assert_eq!(arena(), 3 * PAGE);
        range.trim();
        range.leave(PAGE);
        range.leave(3 * PAGE);
        assert_eq!(arena(), 0);
    }

    #[test]
    fn what_the_machine_does_not_have_is_refused() {
        let device = cpu::fresh();
        let range = Range::new(&device).unwrap();
        let refused = range.enter(1 << 50);
        assert!(matches!(refused, Err(Error::OutOfMemory { .. })));
        assert_eq!(device.ledger().balance(Account::Arena), 0);
    }
}
