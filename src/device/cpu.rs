//! The host as a device.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use super::{ALIGNMENT, Backend, Device, limits};

/// Allocations of this size come straight from the kernel, so that freeing them returns the pages.
const MAP_BYTES: usize = 1 << 20;
/// What is free is read again after this many bytes of allocations,
const RECHECK_BYTES: usize = 64 << 20;
/// or one part in so many of what there was,
const RECHECK_SHARE: usize = 4;
/// where each counts as so many bytes more, for all that is made with it: a tensor's object and
/// what it consists of.
const BESIDE_BYTES: usize = 1 << 10;

/// The one CPU device of the process.
pub fn device() -> &'static Arc<Device> {
    static CPU: OnceLock<Arc<Device>> = OnceLock::new();
    CPU.get_or_init(fresh)
}

/// A CPU device with an account book of its own.
pub(super) fn fresh() -> Arc<Device> {
    let (memory, addresses) = (Gauge::new(limits::memory), Gauge::new(limits::addresses));
    let host = Box::new(Host { memory, addresses });
    Device::new(-1, "cpu", host, super::team::allowed_threads())
}

struct Host {
    memory: Gauge,
    addresses: Gauge,
}

/// Something that there is only so much of.
struct Gauge {
    read: fn() -> usize,
    /// What may still be taken before it is read again.
    credit: AtomicUsize,
}

impl Gauge {
    fn new(read: fn() -> usize) -> Gauge {
        Gauge { read, credit: AtomicUsize::new(0) }
    }

    fn take(&self, bytes: usize) {
        let taken = bytes.saturating_add(BESIDE_BYTES);
        let _ = self.credit.fetch_update(Relaxed, Relaxed, |c| Some(c.saturating_sub(taken)));
    }

    /// How much there is; the last reading is enough where it says that there is so much.
    fn left(&self, wanted: usize) -> usize {
        let credit = self.credit.load(Relaxed);
        if wanted <= credit {
            return credit;
        }
        let free = (self.read)();
        self.credit.store((free / RECHECK_SHARE).min(RECHECK_BYTES), Relaxed);
        free
    }
}

impl Backend for Host {
    fn allocate(&self, bytes: usize) -> Option<NonNull<u8>> {
        self.memory.take(bytes);
        self.addresses.take(bytes);
        if bytes >= MAP_BYTES { map(bytes) } else { small(bytes) }
    }

    unsafe fn free(&self, pointer: NonNull<u8>, bytes: usize) {
        // SAFETY: by the caller's promise the memory came from `map` or `small` with this size.
        unsafe {
            if bytes >= MAP_BYTES {
                libc::munmap(pointer.as_ptr().cast(), bytes);
            } else {
                System.dealloc(pointer.as_ptr(), layout(bytes));
            }
        }
    }

    unsafe fn zero(&self, pointer: NonNull<u8>, bytes: usize) {
        // SAFETY: by the caller's promise the memory is ours and writable.
        unsafe { pointer.write_bytes(0, bytes) }
    }

    fn available(&self, wanted: usize) -> usize {
        self.memory.left(wanted).min(self.addresses.left(wanted))
    }

    fn fillable(&self, wanted: usize) -> usize {
        self.memory.left(wanted)
    }

    fn addresses(&self) -> usize {
        self.addresses.left(usize::MAX)
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
    // What the heap holds back is not for tensors, so it is the system that is asked.
    // SAFETY: size classes are never zero.
    NonNull::new(unsafe { System.alloc(layout(bytes)) })
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
