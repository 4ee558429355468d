//! Memory and execution resources. This module knows nothing of operations.
#![allow(unsafe_code)]

pub mod cpu;
pub mod cuda;
pub mod ending;
pub mod heap;
pub mod ledger;
mod limits;
pub mod live;
pub mod onednn;
pub mod pages;
pub mod pool;
pub mod process;
pub mod range;
pub mod team;

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::{Error, Result};
pub use ledger::{Account, Ledger};
pub use pool::Pool;

/// The memory of a kind of device. What accesses it is the host's by default; a device whose memory
/// the host cannot access has all of these methods of its own, from `is_host` to `decommit`.
pub trait Backend: Send + Sync {
    /// Allocates `bytes` > 0 bytes, aligned to [`ALIGNMENT`] and uninitialised; `None` if refused.
    fn allocate(&self, bytes: usize) -> Option<NonNull<u8>>;

    /// Frees memory.
    ///
    /// # Safety
    /// `pointer` came from [`Backend::allocate`] with the same `bytes` and is not used again.
    unsafe fn free(&self, pointer: NonNull<u8>, bytes: usize);

    /// How many more bytes could be allocated. A cached reading is used if it covers `wanted`.
    fn available(&self, wanted: usize) -> usize;

    /// The same for bytes whose addresses are already reserved.
    fn fillable(&self, wanted: usize) -> usize;

    /// How many more bytes of address space the process may reserve.
    fn addresses(&self) -> usize;

    /// The total physical memory of the machine, in bytes.
    fn total(&self) -> usize;

    /// Whether the host can access the memory without copying it.
    fn is_host(&self) -> bool {
        true
    }

    /// Sets every byte of memory to `value`.
    ///
    /// # Safety
    /// `start` addresses `bytes` writable bytes of this device that nobody else accesses.
    unsafe fn fill(&self, start: NonNull<u8>, value: u8, bytes: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe { start.write_bytes(value, bytes) }
    }

    /// Copies memory to the host.
    ///
    /// # Errors
    /// [`Error::Device`] where the device refuses.
    ///
    /// # Safety
    /// `from` addresses as many initialised bytes of this device, which nobody writes meanwhile.
    unsafe fn download(&self, from: NonNull<u8>, to: &mut [u8]) -> Result<()> {
        // SAFETY: guaranteed by the caller.
        unsafe { to.as_mut_ptr().copy_from_nonoverlapping(from.as_ptr(), to.len()) };
        Ok(())
    }

    /// Copies memory of the host to the device.
    ///
    /// # Errors
    /// As [`Backend::download`].
    ///
    /// # Safety
    /// `to` addresses as many bytes of this device, which nobody else accesses.
    unsafe fn upload(&self, from: &[u8], to: NonNull<u8>) -> Result<()> {
        // SAFETY: guaranteed by the caller.
        unsafe { to.as_ptr().copy_from_nonoverlapping(from.as_ptr(), from.len()) };
        Ok(())
    }

    /// Reserves addresses without memory, aligned to [`pages::LARGE_PAGE`]; `None` if refused.
    fn reserve(&self, bytes: usize) -> Option<NonNull<u8>> {
        pages::reserve(bytes)
    }

    /// Gives reserved addresses back.
    ///
    /// # Safety
    /// They came from [`Backend::reserve`] with the same `bytes` and are not used again.
    unsafe fn unreserve(&self, start: NonNull<u8>, bytes: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe { pages::unreserve(start, bytes) }
    }

    /// Backs reserved addresses with memory; whether that was granted.
    ///
    /// # Safety
    /// They are reserved, not backed, and both ends are multiples of [`pages::PAGE`].
    unsafe fn commit(&self, start: NonNull<u8>, bytes: usize) -> bool {
        // SAFETY: guaranteed by the caller.
        unsafe { pages::commit(start, bytes) }
    }

    /// Releases the memory behind reserved addresses. If they are backed again, it reads as zero.
    ///
    /// # Safety
    /// They are backed, both ends are multiples of [`pages::PAGE`], and nobody uses the contents.
    unsafe fn decommit(&self, start: NonNull<u8>, bytes: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe { pages::decommit(start, bytes) }
    }
}

/// A queue of a device's work, which is done in order. The host does its work at once, so that it
/// needs but one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stream(pub usize);

impl Stream {
    /// The calling thread.
    pub const HOST: Stream = Stream(0);
}

/// Alignment of every block, in bytes: a cache line, and the widest vector register.
pub const ALIGNMENT: usize = 64;

/// A device: where tensors are stored and operations run.
pub struct Device {
    id: i32,
    name: &'static str,
    pool: Pool,
    threads: AtomicUsize,
}

impl Device {
    /// A device whose memory comes from `backend`.
    pub fn new(
        id: i32,
        name: &'static str,
        backend: Box<dyn Backend>,
        threads: usize,
    ) -> Arc<Self> {
        Arc::new(Device { id, name, pool: Pool::new(name, backend), threads: threads.into() })
    }

    /// -1 for the CPU, the ordinal of the GPU for CUDA (SINGA's `Device.id`).
    pub fn id(&self) -> i32 {
        self.id
    }

    /// `cpu` or `cuda`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The allocator of this device.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The memory ledger of this device.
    pub fn ledger(&self) -> &Ledger {
        self.pool.ledger()
    }

    /// How many threads a kernel may use.
    pub fn threads(&self) -> usize {
        self.threads.load(Ordering::Relaxed)
    }

    /// Sets how many threads newly prepared kernels may use, and for the host the thread team's size.
    ///
    /// # Errors
    /// [`Error::Value`] for 0 or more than 1024.
    pub fn set_threads(&self, threads: usize) -> Result<()> {
        crate::ensure!(
            (1..=1024).contains(&threads),
            Error::value("set_num_threads", threads, "1 to 1024 threads")
        );
        self.threads.store(threads, Ordering::Relaxed);
        if self.pool.backend().is_host() {
            team::set_size(threads);
        }
        Ok(())
    }
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Device({}, {})", self.name, self.id)
    }
}
