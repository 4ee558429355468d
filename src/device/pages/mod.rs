//! The host's virtual memory: addresses are reserved first, and backed with memory when needed.
#![allow(unsafe_code)]

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use unix::*;
#[cfg(windows)]
pub use windows::*;

/// Memory is committed and released in multiples of this many bytes: the largest page that a system
/// for this kind of processor has.
pub const PAGE: usize = if cfg!(target_arch = "aarch64") { 64 << 10 } else { 4 << 10 };
/// The size of a huge page: reserved addresses are aligned to it, and backed by huge pages where
/// they fit.
pub const LARGE_PAGE: usize = 2 << 20;
