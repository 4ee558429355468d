//! The host as a device.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use super::{ALIGNMENT, Backend, Device, limits, pages};

/// Allocations of at least this size are mapped directly, so that freeing them returns the pages.
const MAP_BYTES: usize = 1 << 20;
/// The free memory is read again after this many bytes of allocations,
const RECHECK_BYTES: usize = 64 << 20;
/// or after one part in this many of the last reading,
const RECHECK_SHARE: usize = 4;
/// whichever is less. Each allocation counts as this many bytes more, for the tensor object and
/// whatever else is created with it.
const BESIDE_BYTES: usize = 1 << 10;

/// The CPU device, one per process.
pub fn device() -> &'static Arc<Device> {
    static CPU: OnceLock<Arc<Device>> = OnceLock::new();
    CPU.get_or_init(fresh)
}

/// A CPU device with a ledger of its own.
pub(super) fn fresh() -> Arc<Device> {
    let (memory, addresses) = (Gauge::new(limits::memory), Gauge::new(limits::addresses));
    let host = Box::new(Host { memory, addresses });
    Device::new(-1, "cpu", host, super::team::allowed_threads())
}

struct Host {
    memory: Gauge,
    addresses: Gauge,
}

/// A limited resource, whose remaining amount is expensive to read.
struct Gauge {
    read: fn() -> usize,
    /// How much may be taken before the amount is read again.
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

    /// How much is left. Without a new reading if `wanted` is within the credit.
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
        if bytes >= MAP_BYTES { pages::map(bytes) } else { small(bytes) }
    }

    unsafe fn free(&self, pointer: NonNull<u8>, bytes: usize) {
        // SAFETY: the caller guarantees that the memory came from `pages::map` or `small` with this
        // size.
        unsafe {
            if bytes >= MAP_BYTES {
                pages::unmap(pointer, bytes);
            } else {
                System.dealloc(pointer.as_ptr(), layout(bytes));
            }
        }
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
        pages::installed()
    }
}

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, ALIGNMENT).expect("a size class is a valid layout")
}

fn small(bytes: usize) -> Option<NonNull<u8>> {
    // Bypasses the global allocator, because the heap's reserve is not for tensors.
    // SAFETY: size classes are never zero.
    NonNull::new(unsafe { System.alloc(layout(bytes)) })
}
