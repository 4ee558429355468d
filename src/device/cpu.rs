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
/// The reserve is at most one part in so many of the machine's memory or a group's limit.
const RESERVE_SHARE: usize = 8;

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
    let machine = std::fs::read_to_string("/proc/meminfo").ok();
    let machine = machine.and_then(|text| machine_headroom(&text));
    cgroup_headrooms().into_iter().chain(machine).min().unwrap_or(usize::MAX)
}

/// What is free of `total` bytes when some are kept for the rest of the process.
fn without_reserve(free: usize, total: usize) -> usize {
    free.saturating_sub(RESERVE_BYTES.min(total / RESERVE_SHARE))
}

/// What the machine leaves, by the text of its `meminfo`.
fn machine_headroom(meminfo: &str) -> Option<usize> {
    let bytes = |name: &str| {
        let line = meminfo.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(':'))?;
        Some(line.trim().trim_end_matches(" kB").parse::<usize>().ok()? << 10)
    };
    Some(without_reserve(bytes("MemAvailable")?, bytes("MemTotal")?))
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
    let headroom = |folder: &std::path::Path| {
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
        group_headroom(&read(limit)?, &read(usage)?, &read("memory.stat").unwrap_or_default())
    };
    within.filter_map(headroom).collect()
}

/// What a control group leaves, by the texts of its limit, its usage and its statistics; None
/// where it has no limit.
fn group_headroom(limit: &str, usage: &str, stat: &str) -> Option<usize> {
    let [limit, usage] = [limit, usage].map(|text| text.trim().parse::<usize>().ok());
    let (limit, usage) = (limit?, usage?);
    let count = |name: &str| {
        stat.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(' ')?.parse::<usize>().ok())
    };
    // Pages of cached files count as usage but are given up under pressure. Version 1 counts
    // those of the groups below apart.
    let cached = count("total_inactive_file").or_else(|| count("inactive_file")).unwrap_or(0);
    Some(without_reserve(limit.saturating_sub(usage.saturating_sub(cached)), limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn large_memory_keeps_a_fixed_reserve_and_small_memory_a_share() {
        assert_eq!(without_reserve(10 << 30, 16 << 30), (10 << 30) - 256 * MIB);
        assert_eq!(without_reserve(400 * MIB, 512 * MIB), 336 * MIB);
        assert_eq!(without_reserve(10 * MIB, 512 * MIB), 0);
    }

    #[test]
    fn the_machine_leaves_what_it_calls_available() {
        let text = "MemTotal:        1048576 kB\nMemFree:          100 kB\n\
                    MemAvailable:     524288 kB\nBuffers:         4 kB\n";
        assert_eq!(machine_headroom(text), Some(384 * MIB));
        assert_eq!(machine_headroom("MemTotal: 1048576 kB\nMemFree: 100 kB\n"), None);
        assert_eq!(machine_headroom("MemAvailable: much\nMemTotal: 4 kB\n"), None);
    }

    #[test]
    fn a_control_group_s_cached_files_count_as_free() {
        let [limit, usage] = [800 * MIB, 500 * MIB].map(|n| format!("{n}\n"));
        let free = |stat: &str| group_headroom(&limit, &usage, stat);
        assert_eq!(free(""), Some(200 * MIB));
        let stat = format!("anon 1\ninactive_file {}\nactive_file 9\n", 100 * MIB);
        assert_eq!(free(&stat), Some(300 * MIB));
        // Version 1: the group's own pages, and with those of the groups below.
        let stat = format!("inactive_file {MIB}\ntotal_inactive_file {}\n", 50 * MIB);
        assert_eq!(free(&stat), Some(250 * MIB));
        assert_eq!(free(&format!("inactive_file {}\n", 900 * MIB)), Some(700 * MIB));
    }

    #[test]
    fn a_control_group_without_a_limit_leaves_everything() {
        assert_eq!(group_headroom("max\n", "4096\n", ""), None);
        let unlimited = "9223372036854771712\n";
        assert!(group_headroom(unlimited, "4096\n", "").unwrap() > 1 << 60);
        assert_eq!(group_headroom("4096\n", "", ""), None);
    }
}
