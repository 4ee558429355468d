//! Pages of Windows.

use std::ptr::{NonNull, null};

use windows_sys::Win32::System::Memory::{
    MEM_COMMIT, MEM_DECOMMIT, MEM_RELEASE, MEM_RESERVE, MEMORY_BASIC_INFORMATION, PAGE_NOACCESS,
    PAGE_READWRITE, VirtualAlloc, VirtualFree, VirtualQuery,
};
use windows_sys::Win32::System::SystemInformation::{
    GetSystemInfo, GlobalMemoryStatusEx, MEMORYSTATUSEX, SYSTEM_INFO,
};

use super::LARGE_PAGE;

/// Maps memory of zeros; `None` if the system refuses.
pub fn map(bytes: usize) -> Option<NonNull<u8>> {
    // SAFETY: a new range at an address chosen by the system.
    let start = unsafe { VirtualAlloc(null(), bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE) };
    NonNull::new(start.cast())
}

/// As [`map`]: Windows counts all memory from the beginning.
pub fn map_uncounted(bytes: usize) -> Option<NonNull<u8>> {
    map(bytes)
}

/// Gives mapped memory back; whether the system took it.
///
/// # Safety
/// It came from [`map`] or [`map_uncounted`] with the same `bytes` and is not used again.
pub unsafe fn unmap(start: NonNull<u8>, _bytes: usize) -> bool {
    // SAFETY: guaranteed by the caller.
    unsafe { VirtualFree(start.as_ptr().cast(), 0, MEM_RELEASE) != 0 }
}

/// Reserves addresses, aligned to [`LARGE_PAGE`]; `None` if the system refuses.
pub fn reserve(bytes: usize) -> Option<NonNull<u8>> {
    // One huge page larger than needed, so that the range can be aligned; what is left over stays
    // reserved, since ranges are released as a whole.
    // SAFETY: a new range at an address chosen by the system.
    let start = unsafe { VirtualAlloc(null(), bytes + LARGE_PAGE, MEM_RESERVE, PAGE_NOACCESS) };
    let start: NonNull<u8> = NonNull::new(start.cast())?;
    let skipped = start.addr().get().next_multiple_of(LARGE_PAGE) - start.addr().get();
    // SAFETY: it is within the range.
    Some(unsafe { start.byte_add(skipped) })
}

/// Gives reserved addresses back.
///
/// # Safety
/// They came from [`reserve`] with the same `bytes` and are not used again.
pub unsafe fn unreserve(start: NonNull<u8>, _bytes: usize) {
    let mut range = MEMORY_BASIC_INFORMATION::default();
    // SAFETY: the call writes the range's beginning, which `reserve` got; guaranteed by the caller.
    unsafe {
        VirtualQuery(start.as_ptr().cast(), &mut range, size_of_val(&range));
        VirtualFree(range.AllocationBase, 0, MEM_RELEASE);
    }
}

/// Makes reserved pages accessible; whether the system granted that.
///
/// # Safety
/// The pages are reserved.
pub unsafe fn commit(start: NonNull<u8>, bytes: usize) -> bool {
    // SAFETY: guaranteed by the caller.
    unsafe { !VirtualAlloc(start.as_ptr().cast(), bytes, MEM_COMMIT, PAGE_READWRITE).is_null() }
}

/// Releases reserved pages to the system.
///
/// # Safety
/// The pages are reserved, and nobody uses their contents.
pub unsafe fn decommit(start: NonNull<u8>, bytes: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe { VirtualFree(start.as_ptr().cast(), bytes, MEM_DECOMMIT) };
}

/// Bytes of a page of this system.
pub fn page() -> usize {
    let mut system = SYSTEM_INFO::default();
    // SAFETY: the call writes numbers.
    unsafe { GetSystemInfo(&mut system) };
    system.dwPageSize as usize
}

/// Bytes of the machine's memory.
pub fn installed() -> usize {
    status().ullTotalPhys as usize
}

/// Bytes of the machine's memory that are free and may be committed.
pub fn free() -> Option<usize> {
    let status = status();
    Some(status.ullAvailPhys.min(status.ullAvailPageFile) as usize)
}

fn status() -> MEMORYSTATUSEX {
    let mut status = MEMORYSTATUSEX::default();
    status.dwLength = size_of_val(&status) as u32;
    // SAFETY: the call writes numbers, as many as the length says.
    unsafe { GlobalMemoryStatusEx(&mut status) };
    status
}
