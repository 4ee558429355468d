//! The host as a device.
#![allow(unsafe_code)]

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use super::{ALIGNMENT, Backend, Device};

/// Allocations of this size come straight from the kernel, so that freeing them returns the pages.
const MAP_BYTES: usize = 1 << 20;
/// The machine's free memory is read again after this many bytes of small allocations.
const RECHECK_BYTES: usize = 64 << 20;
/// Left to the rest of the process, so that a refusal is an exception and not the kernel's kill.
const RESERVE_BYTES: usize = 256 << 20;

/// The one CPU device of the process.
pub fn device() -> &'static Arc<Device> {
    static CPU: OnceLock<Arc<Device>> = OnceLock::new();
    CPU.get_or_init(fresh)
}

/// A CPU device with an account book of its own.
pub(super) fn fresh() -> Arc<Device> {
    Device::new(-1, "cpu", Box::<Host>::default(), super::team::allowed_threads())
}

#[derive(Default)]
struct Host {
    /// What may still be taken before the machine is asked again.
    credit: AtomicUsize,
}

impl Backend for Host {
    fn allocate(&self, bytes: usize) -> Option<NonNull<u8>> {
        let _ = self.credit.fetch_update(Relaxed, Relaxed, |c| Some(c.saturating_sub(bytes)));
        if bytes >= MAP_BYTES { map(bytes) } else { small(bytes) }
    }

    unsafe fn free(&self, pointer: NonNull<u8>, bytes: usize) {
        // SAFETY: by the caller's promise the memory came from `map` or `small` with this size.
        unsafe {
            if bytes >= MAP_BYTES {
                libc::munmap(pointer.as_ptr().cast(), bytes);
            } else {
                std::alloc::dealloc(pointer.as_ptr(), layout(bytes));
            }
        }
    }

    unsafe fn zero(&self, pointer: NonNull<u8>, bytes: usize) {
        // SAFETY: by the caller's promise the memory is ours and writable.
        unsafe { pointer.write_bytes(0, bytes) }
    }

    fn available(&self, wanted: usize) -> usize {
        let credit = self.credit.load(Relaxed);
        if wanted <= credit {
            return credit;
        }
        let free = machine_available();
        self.credit.store(free.min(RECHECK_BYTES), Relaxed);
        free
    }

    fn total(&self) -> usize {
        // SAFETY: asks for two numbers.
        let (pages, size) =
            unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
        (pages.max(1) as usize).saturating_mul(size.max(1) as usize)
    }
}

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, ALIGNMENT).expect("a size class is a valid layout")
}

fn small(bytes: usize) -> Option<NonNull<u8>> {
    // SAFETY: size classes are never zero.
    NonNull::new(unsafe { std::alloc::alloc(layout(bytes)) })
}

fn map(bytes: usize) -> Option<NonNull<u8>> {
    // SAFETY: an anonymous private mapping at an address of the kernel's choice.
    let pointer = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if pointer == libc::MAP_FAILED {
        return None;
    }
    // Fewer page faults and TLB misses; a refusal changes nothing.
    #[cfg(target_os = "linux")]
    // SAFETY: the range was just mapped.
    unsafe {
        libc::madvise(pointer, bytes, libc::MADV_HUGEPAGE);
    }
    NonNull::new(pointer.cast())
}

/// Bytes that this process may still take: the machine's free memory or what the control
/// groups leave, whichever is less, minus a reserve.
fn machine_available() -> usize {
    let groups = cgroup_headrooms();
    let free = groups.into_iter().chain(meminfo_available()).min();
    free.unwrap_or(usize::MAX).saturating_sub(RESERVE_BYTES)
}

fn meminfo_available() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<usize>().ok()? << 10)
}

/// What each control group above this process leaves (version 2, then version 1).
fn cgroup_headrooms() -> Vec<usize> {
    let membership = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    membership
        .lines()
        .flat_map(|line| line.split_once(':').map(|(_, rest)| rest))
        .flat_map(headrooms)
        .collect()
}

fn headrooms(membership: &str) -> Vec<usize> {
    let (root, limit, usage, path) = match membership.split_once(':') {
        Some(("", path)) => ("/sys/fs/cgroup", "memory.max", "memory.current", path),
        Some((controllers, path)) if controllers.split(',').any(|c| c == "memory") => {
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", path)
        }
        _ => return Vec::new(),
    };
    let leaf = std::path::Path::new(root).join(path.trim_start_matches('/'));
    let within = leaf.ancestors().take_while(|folder| folder.starts_with(root));
    within.filter_map(|folder| headroom(folder, limit, usage)).collect()
}

fn headroom(folder: &std::path::Path, limit: &str, usage: &str) -> Option<usize> {
    let read =
        |name: &str| std::fs::read_to_string(folder.join(name)).ok()?.trim().parse::<usize>().ok();
    // Pages of cached files count as usage but are given up under pressure.
    let stat = std::fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let cached =
        stat.lines().find_map(|l| l.strip_prefix("inactive_file ")?.parse().ok()).unwrap_or(0);
    Some(read(limit)?.saturating_sub(read(usage)?.saturating_sub(cached)))
}
