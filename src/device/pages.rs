//! The host's virtual memory: addresses are reserved first, and backed with memory when needed.
#![allow(unsafe_code)]

use std::ptr::NonNull;

/// Memory is committed and released in multiples of this many bytes.
pub const PAGE: usize = 4 << 10;
/// The size of a huge page: reserved addresses are aligned to it, and backed by huge pages where
/// they fit.
pub const LARGE_PAGE: usize = 2 << 20;

/// Reserves addresses, aligned to [`LARGE_PAGE`]; `None` if the system refuses.
pub fn reserve(bytes: usize) -> Option<NonNull<u8>> {
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

/// Gives reserved addresses back.
///
/// # Safety
/// They came from [`reserve`] with the same `bytes` and are not used again.
pub unsafe fn unreserve(start: NonNull<u8>, bytes: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe { libc::munmap(start.as_ptr().cast(), bytes) };
}

/// Makes reserved pages accessible; whether the system granted that.
///
/// # Safety
/// The pages are reserved.
pub unsafe fn commit(start: NonNull<u8>, bytes: usize) -> bool {
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

/// Releases reserved pages to the system.
///
/// # Safety
/// The pages are reserved, and nobody uses their contents.
pub unsafe fn decommit(start: NonNull<u8>, bytes: usize) {
    let start = start.as_ptr().cast();
    // SAFETY: guaranteed by the caller.
    unsafe {
        libc::madvise(start, bytes, libc::MADV_DONTNEED);
        libc::mprotect(start, bytes, libc::PROT_NONE);
    }
}
