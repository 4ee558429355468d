//! Pages of Linux and macOS.

use std::ffi::c_int;
use std::ptr::{NonNull, null_mut};

use super::LARGE_PAGE;

/// Maps memory, or only addresses, wherever the system likes to.
fn mapped(bytes: usize, access: c_int, more: c_int) -> Option<NonNull<u8>> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | more;
    // SAFETY: an anonymous private mapping at an address chosen by the system.
    let start = unsafe { libc::mmap(null_mut(), bytes, access, flags, -1, 0) };
    if start == libc::MAP_FAILED { None } else { NonNull::new(start.cast()) }
}

/// Maps memory of zeros, in huge pages where they fit; `None` if the system refuses.
pub fn map(bytes: usize) -> Option<NonNull<u8>> {
    let start = mapped(bytes, libc::PROT_READ | libc::PROT_WRITE, 0)?;
    prefer_large(start, bytes);
    Some(start)
}

/// Maps memory that is not to be counted as used until it is touched.
pub fn map_uncounted(bytes: usize) -> Option<NonNull<u8>> {
    mapped(bytes, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_NORESERVE)
}

/// Gives mapped memory back; whether the system took it.
///
/// # Safety
/// It came from [`map`] or [`map_uncounted`] with the same `bytes` and is not used again.
pub unsafe fn unmap(start: NonNull<u8>, bytes: usize) -> bool {
    // SAFETY: guaranteed by the caller.
    unsafe { libc::munmap(start.as_ptr().cast(), bytes) == 0 }
}

/// Reserves addresses, aligned to [`LARGE_PAGE`]; `None` if the system refuses.
pub fn reserve(bytes: usize) -> Option<NonNull<u8>> {
    // One huge page larger than needed, so that the range can be aligned.
    let mapped = mapped(bytes + LARGE_PAGE, libc::PROT_NONE, libc::MAP_NORESERVE)?;
    let skipped = mapped.addr().get().next_multiple_of(LARGE_PAGE) - mapped.addr().get();
    // SAFETY: both ends are in the mapping and unused.
    unsafe {
        if skipped > 0 {
            unmap(mapped, skipped);
        }
        unmap(mapped.byte_add(skipped + bytes), LARGE_PAGE - skipped);
        Some(mapped.byte_add(skipped))
    }
}

/// Gives reserved addresses back.
///
/// # Safety
/// They came from [`reserve`] with the same `bytes` and are not used again.
pub unsafe fn unreserve(start: NonNull<u8>, bytes: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe { unmap(start, bytes) };
}

/// Makes reserved pages accessible; whether the system granted that.
///
/// # Safety
/// The pages are reserved.
pub unsafe fn commit(start: NonNull<u8>, bytes: usize) -> bool {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: guaranteed by the caller.
    let granted = unsafe { libc::mprotect(start.as_ptr().cast(), bytes, access) } == 0;
    if bytes >= LARGE_PAGE {
        prefer_large(start, bytes);
    }
    granted
}

/// Releases reserved pages to the system.
///
/// # Safety
/// The pages are reserved, and nobody uses their contents.
#[cfg(target_os = "linux")]
pub unsafe fn decommit(start: NonNull<u8>, bytes: usize) {
    let start = start.as_ptr().cast();
    // SAFETY: guaranteed by the caller.
    unsafe {
        libc::madvise(start, bytes, libc::MADV_DONTNEED);
        libc::mprotect(start, bytes, libc::PROT_NONE);
    }
}

/// Releases reserved pages to the system. Advice would leave them their contents here.
///
/// # Safety
/// The pages are reserved, and nobody uses their contents.
#[cfg(not(target_os = "linux"))]
pub unsafe fn decommit(start: NonNull<u8>, bytes: usize) {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
    // SAFETY: guaranteed by the caller; the new mapping takes the place of the old one.
    unsafe { libc::mmap(start.as_ptr().cast(), bytes, libc::PROT_NONE, flags, -1, 0) };
}

/// Asks for huge pages, which make fewer page faults and TLB misses; it does no harm if there are
/// none.
fn prefer_large(start: NonNull<u8>, bytes: usize) {
    #[cfg(target_os = "linux")]
    // SAFETY: advice changes no contents.
    unsafe {
        libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (start, bytes);
}

/// Bytes of a page of this system.
pub fn page() -> usize {
    // SAFETY: asks for a number.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.max(1) as usize
}

/// Bytes of the machine's memory.
pub fn installed() -> usize {
    // SAFETY: asks for a number.
    let pages = unsafe { libc::sysconf(libc::_SC_PHYS_PAGES) };
    (pages.max(1) as usize).saturating_mul(page())
}

/// Bytes of the machine's memory that are free, where only a function tells.
pub fn free() -> Option<usize> {
    None
}
