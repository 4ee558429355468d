//! A fixed range of reserved addresses, whose pages are committed and released on demand.
#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering::*};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Account, Device};
use crate::error::Result;

/// Memory is committed and released in multiples of this many bytes.
const PAGE: usize = 4 << 10;
/// The size of a huge page: a range is aligned to it and uses huge pages where they fit.
const LARGE_PAGE: usize = 2 << 20;

/// Addresses reserved for planned memory, backed up to the height that its users need.
pub struct Range {
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
    pub fn new(device: &Device) -> Result<Self> {
        let backend = device.pool().backend();
        // If address space is limited, leave half of it to the rest of the process.
        let most = backend.total().min(backend.addresses() / 2);
        let mut bytes = most.next_multiple_of(LARGE_PAGE);
        loop {
            if let Some(start) = reserve(bytes) {
                return Ok(Range { start, bytes, backed: 0.into(), heights: Mutex::default() });
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
    pub fn back(&self, device: &Device, height: usize) -> Result<()> {
        if height <= self.backed.load(Acquire) {
            return Ok(());
        }
        let _heights = self.heights();
        self.grow(device, height)
    }

    /// Registers a user of the first `height` bytes, and backs them with memory.
    ///
    /// # Errors
    /// As [`Range::back`].
    pub fn enter(&self, device: &Device, height: usize) -> Result<()> {
        let mut heights = self.heights();
        self.grow(device, height)?;
        heights.push(height);
        Ok(())
    }

    /// Unregisters a user, and releases what only that user needed.
    pub fn leave(&self, device: &Device, height: usize) {
        let mut heights = self.heights();
        if let Some(place) = heights.iter().position(|h| *h == height) {
            heights.swap_remove(place);
        }
        let needed = heights.iter().copied().max().unwrap_or(0).next_multiple_of(PAGE);
        self.shrink(device, needed);
    }

    /// Releases all memory, even what users need: each calls [`Range::back`] before it runs again.
    /// The caller must have exclusive access to the contents. Returns the number of bytes released.
    pub fn trim(&self, device: &Device) -> usize {
        let _heights = self.heights();
        self.shrink(device, 0)
    }

    /// Fills the first bytes with a pattern that is NaN in every float type. The caller must have
    /// exclusive access to them.
    pub fn poison(&self, bytes: usize) {
        // SAFETY: this many bytes are backed, and nobody else uses them.
        unsafe { self.start.write_bytes(0xff, bytes.min(self.backed.load(Acquire))) };
    }

    /// Backs the first `height` bytes, unless they are already backed. The caller holds the lock.
    fn grow(&self, device: &Device, height: usize) -> Result<()> {
        let backed = self.backed.load(Relaxed);
        let more = height.next_multiple_of(PAGE).saturating_sub(backed);
        if more == 0 {
            return Ok(());
        }
        let refused = || device.pool().out_of_memory("arena", height);
        crate::ensure!(height <= self.bytes && device.pool().can_fill(more), refused());
        // SAFETY: the pages are in the range and not yet backed.
        let granted = unsafe { back(self.start.add(backed), more) };
        crate::ensure!(granted, refused());
        device.ledger().charge(Account::Arena, more);
        self.backed.store(backed + more, Release);
        Ok(())
    }

    /// Releases the pages beyond the first `needed` bytes; returns how many bytes that is. The
    /// caller holds the lock.
    fn shrink(&self, device: &Device, needed: usize) -> usize {
        let less = self.backed.load(Relaxed).saturating_sub(needed);
        if less == 0 {
            return 0;
        }
        // SAFETY: the pages are in the range, and nobody uses them any more.
        unsafe { withdraw(self.start.add(needed), less) };
        device.ledger().release(Account::Arena, less);
        self.backed.store(needed, Release);
        less
    }

    fn heights(&self) -> MutexGuard<'_, Vec<usize>> {
        self.heights.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Range {
    fn drop(&mut self) {
        // SAFETY: the range was mapped with this size, and its users are gone.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

fn reserve(bytes: usize) -> Option<NonNull<u8>> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: an anonymous private mapping at an address chosen by the kernel; one huge page larger
    // than needed, so that the range can be aligned.
    let mapped = unsafe {
        libc::mmap(std::ptr::null_mut(), bytes + LARGE_PAGE, libc::PROT_NONE, flags, -1, 0)
    };
    if mapped == libc::MAP_FAILED {
        return None;
    }
    let skipped = mapped.addr().next_multiple_of(LARGE_PAGE) - mapped.addr();
    // SAFETY: both ends are in the mapping and unused.
    unsafe {
        if skipped > 0 {
            libc::munmap(mapped, skipped);
        }
        libc::munmap(mapped.byte_add(skipped + bytes), LARGE_PAGE - skipped);
        NonNull::new(mapped.byte_add(skipped).cast())
    }
}

/// Makes pages of a range accessible.
///
/// # Safety
/// The pages belong to a range.
unsafe fn back(start: NonNull<u8>, bytes: usize) -> bool {
    let start = start.as_ptr().cast();
    // SAFETY: guaranteed by the caller.
    unsafe {
        let granted = libc::mprotect(start, bytes, libc::PROT_READ | libc::PROT_WRITE) == 0;
        #[cfg(target_os = "linux")]
        if bytes >= LARGE_PAGE {
            libc::madvise(start, bytes, libc::MADV_HUGEPAGE);
        }
        granted
    }
}

/// Releases pages of a range to the system.
///
/// # Safety
/// The pages belong to a range, and nobody uses their contents.
unsafe fn withdraw(start: NonNull<u8>, bytes: usize) {
    let start = start.as_ptr().cast();
    // SAFETY: guaranteed by the caller.
    unsafe {
        libc::madvise(start, bytes, libc::MADV_DONTNEED);
        libc::mprotect(start, bytes, libc::PROT_NONE);
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
        range.enter(&device, 3 * PAGE).unwrap();
        range.enter(&device, PAGE - 1).unwrap();
        assert_eq!(arena(), 3 * PAGE);
        // SAFETY: three pages are backed.
        unsafe { range.start().add(3 * PAGE - 1).write(7) };
        range.leave(&device, 3 * PAGE);
        assert_eq!(arena(), PAGE);
        range.enter(&device, 2 * PAGE).unwrap();
        // SAFETY: two pages are backed, the second one newly.
        assert_eq!(unsafe { range.start().add(2 * PAGE - 1).read() }, 0);
        range.leave(&device, PAGE - 1);
        range.leave(&device, 2 * PAGE);
        assert_eq!(arena(), 0);
    }

    #[test]
    fn what_was_trimmed_is_backed_anew() {
        let device = cpu::fresh();
        let range = Range::new(&device).unwrap();
        let arena = || device.ledger().balance(Account::Arena);
        range.enter(&device, 3 * PAGE).unwrap();
        // SAFETY: three pages are backed.
        unsafe { range.start().write(7) };
        assert_eq!((range.trim(&device), arena(), range.trim(&device)), (3 * PAGE, 0, 0));
        range.enter(&device, PAGE).unwrap();
        assert_eq!(arena(), PAGE, "only what somebody is about to use");
        // SAFETY: one page is backed.
        assert_eq!(unsafe { range.start().read() }, 0);
        range.back(&device, 3 * PAGE).unwrap();
        range.back(&device, PAGE).unwrap();
        assert_eq!(arena(), 3 * PAGE);
        range.trim(&device);
        range.leave(&device, PAGE);
        range.leave(&device, 3 * PAGE);
        assert_eq!(arena(), 0);
    }

    #[test]
    fn what_the_machine_does_not_have_is_refused() {
        let device = cpu::fresh();
        let range = Range::new(&device).unwrap();
        let refused = range.enter(&device, 1 << 50);
        assert!(matches!(refused, Err(Error::OutOfMemory { .. })));
        assert_eq!(device.ledger().balance(Account::Arena), 0);
    }
}
