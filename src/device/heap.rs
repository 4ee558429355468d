//! The C library's heap, from which small things come: prepared kernels, graphs, Python's objects.

/// Gives the heap's free pages back to the system. Preparing kernels takes and frees hundreds of
/// KiB, which a process of small models would keep for good. Takes about a millisecond.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn release() {
    // SAFETY: it may be called at any time, from any thread.
    #[allow(unsafe_code)]
    unsafe {
        libc::malloc_trim(0)
    };
}

/// Other C libraries give pages back by themselves, or not at all.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn release() {}
