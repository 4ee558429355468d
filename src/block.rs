//! A block is memory that may not have been allocated yet.

mod divided;
mod storage;

use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering::*};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::device::{ALIGNMENT, Account, Device};
use crate::error::{Error, Result, locked};
pub use divided::{Divided, Place as DividedPlace};
use storage::Storage;
pub use storage::{Initialiser, Latest, Owner, changes, note_change};

/// Untyped memory on a device, allocated on first use. Memory that was never written reads as zero.
pub struct Block {
    device: Arc<Device>,
    bytes: usize,
    /// Null until memory is allocated; set once, so that reading it needs no lock.
    address: AtomicPtr<u8>,
    is_lent: bool,
    storage: Mutex<Storage>,
    version: AtomicU64,
    account: AtomicU8,
    /// How many graphs have captured the block, that is, use it as memory that exists before they
    /// run.
    captures: AtomicU32,
    /// How many other libraries hold the memory; any of them may write to it.
    borrowers: AtomicU32,
    /// How many tensor objects that pointed to the block have been redirected to another one.
    departures: AtomicU32,
    /// Set if the block is only a placeholder for what each run of a graph produces.
    latest: OnceLock<Arc<Latest>>,
    /// Set once its elements are divided among processes.
    divided: OnceLock<Arc<Divided>>,
}

impl Block {
    /// A block without memory.
    pub fn new(device: &Arc<Device>, bytes: usize) -> Arc<Self> {
        Self::with(device, bytes, std::ptr::null_mut(), Storage::None)
    }

    /// A placeholder for the result of an operation that was recorded at this line of the user's
    /// program. Its memory may be overwritten, but not read.
    pub fn recorded(device: &Arc<Device>, bytes: usize, line: Arc<str>) -> Arc<Self> {
        Self::with(device, bytes, std::ptr::null_mut(), Storage::Recorded(line))
    }

    /// A block that wraps memory of another library, which `owner` keeps alive.
    pub fn foreign(
        device: &Arc<Device>,
        bytes: usize,
        pointer: NonNull<u8>,
        owner: Box<dyn Owner>,
    ) -> Arc<Self> {
        Self::with(device, bytes, pointer.as_ptr(), Storage::Lent { _owner: owner })
    }

    fn with(device: &Arc<Device>, bytes: usize, address: *mut u8, storage: Storage) -> Arc<Self> {
        Arc::new(Block {
            device: device.clone(),
            bytes,
            address: AtomicPtr::new(address),
            is_lent: matches!(storage, Storage::Lent { .. }),
            storage: Mutex::new(storage),
            version: AtomicU64::new(0),
            account: AtomicU8::new(Account::Results as u8),
            captures: AtomicU32::new(0),
            borrowers: AtomicU32::new(0),
            departures: AtomicU32::new(0),
            latest: OnceLock::new(),
            divided: OnceLock::new(),
        })
    }

    /// The device that holds the block.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Records that a write was submitted.
    pub fn touch(&self) {
        self.version.fetch_add(1, Relaxed);
    }

    /// Whether memory has been allocated.
    pub fn is_allocated(&self) -> bool {
        self.address().is_some()
    }

    /// The address, if memory has been allocated.
    pub fn address(&self) -> Option<NonNull<u8>> {
        NonNull::new(self.address.load(Acquire))
    }

    /// Whether the memory belongs to another library, so that other blocks may alias it.
    pub fn is_lent(&self) -> bool {
        self.is_lent
    }

    /// Records that another library holds the memory, until [`Block::take_back`].
    pub fn lend(&self) {
        self.borrowers.fetch_add(1, Relaxed);
    }

    /// Records that a library has released memory lent to it. It may have written to it.
    pub fn take_back(&self) {
        self.touch();
        self.borrowers.fetch_sub(1, Relaxed);
    }

    /// Whether another library may write to the memory without raising the version.
    pub fn is_exposed(&self) -> bool {
        self.is_lent || self.borrowers.load(Relaxed) > 0
    }

    /// Its address; memory is allocated if need be, and zeroed or initialised.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; [`Error::Graph`] if the value is only recorded; any error of a
    /// pending initialiser.
    pub fn to_touch(&self) -> Result<NonNull<u8>> {
        self.pointer(true)
    }

    /// Its address, for writing every byte: fresh memory is neither zeroed nor initialised first.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn to_overwrite(&self) -> Result<NonNull<u8>> {
        self.pointer(false)
    }

    fn pointer(&self, zeroed: bool) -> Result<NonNull<u8>> {
        match self.address() {
            Some(address) => Ok(address),
            None if self.bytes == 0 => Ok(dangling()),
            None => self.allocate(zeroed),
        }
    }

    #[cold]
    fn allocate(&self, zeroed: bool) -> Result<NonNull<u8>> {
        self.check_whole()?;
        if zeroed && let Some(initialiser) = self.initialiser()? {
            initialiser.run()?;
        }
        let mut storage = self.storage();
        if let Some(address) = self.address() {
            return Ok(address);
        }
        let allocation = self.device.pool().take(self.bytes, self.account(), zeroed)?;
        let address = allocation.pointer();
        *storage = Storage::Pooled(allocation);
        self.address.store(address.as_ptr(), Release);
        Ok(address)
    }

    /// The initialiser that must run before the block can be read.
    fn initialiser(&self) -> Result<Option<Arc<dyn Initialiser>>> {
        match &*self.storage() {
            Storage::Pending(initialiser) => Ok(Some(initialiser.clone())),
            Storage::Recorded(line) => Err(Error::graph(
                "tensor",
                format!(
                    "the operation that makes its value was only recorded, at {line}, and has \
                     not run"
                ),
            )),
            _ => Ok(None),
        }
    }

    /// The line of the user's program that requested the operation that computes the block's value,
    /// if that has not run.
    pub fn recorded_at(&self) -> Option<Arc<str>> {
        match &*self.storage() {
            Storage::Recorded(line) if !self.is_allocated() => Some(line.clone()),
            _ => None,
        }
    }

    /// Whether the value is still pending, from an initialiser or from a graph that has not run.
    pub fn is_waiting(&self) -> bool {
        matches!(&*self.storage(), Storage::Pending(_) | Storage::Recorded(_))
    }

    /// Releases memory that an initialiser failed to fill; the initialiser will be retried.
    pub fn retract(&self, initialiser: Arc<dyn Initialiser>) {
        let mut storage = self.storage();
        self.address.store(std::ptr::null_mut(), Release);
        if let Storage::Pooled(allocation) =
            std::mem::replace(&mut *storage, Storage::Pending(initialiser))
        {
            self.device.pool().give(allocation, self.account());
        }
    }

    /// Leaves the block's first value to an initialiser, unless it has memory already.
    pub fn postpone(&self, initialiser: Arc<dyn Initialiser>) {
        let mut storage = self.storage();
        if matches!(*storage, Storage::None) {
            *storage = Storage::Pending(initialiser);
        }
    }

    /// Clears a pending initialiser; returns whether there was one.
    pub fn take_pending(&self) -> bool {
        let mut storage = self.storage();
        let is_pending = matches!(*storage, Storage::Pending(_));
        if is_pending {
            *storage = Storage::None;
        }
        is_pending
    }

    /// Makes the block a placeholder for what `latest` points to, unless it already is a
    /// placeholder; returns what it stands for.
    pub fn follow(&self, latest: &Arc<Latest>) -> &Arc<Latest> {
        let latest = self.latest.get_or_init(|| latest.clone());
        latest.is_followed.store(true, Relaxed);
        latest
    }

    /// Whether the block is a placeholder for a result of a graph.
    pub fn shows_runs(&self) -> bool {
        self.latest.get().is_some()
    }

    /// The block that this one is a placeholder for, if the graph that produces it has run.
    pub fn current(&self) -> Option<Arc<Block>> {
        self.latest.get()?.get()
    }

    /// Counts one more graph that captures the block, or with `false` one fewer.
    pub fn set_captured(&self, by_one_more: bool) {
        if by_one_more {
            self.captures.fetch_add(1, Relaxed);
        } else {
            self.captures.fetch_sub(1, Relaxed);
        }
    }

    /// How many tensor objects that pointed to the block have been redirected to another one.
    pub fn departures(&self) -> u32 {
        self.departures.load(Relaxed)
    }

    /// Records that a tensor object was redirected to another block.
    pub fn note_departure(&self) {
        self.departures.fetch_add(1, Relaxed);
    }

    /// Whether two blocks overlap in memory, as blocks on another library's memory may.
    pub fn meets(&self, other: &Block) -> bool {
        self.shares(0..self.bytes, other, 0..other.bytes)
    }

    /// Whether these bytes of two blocks overlap in memory.
    pub fn shares(&self, range: Range<usize>, other: &Block, theirs: Range<usize>) -> bool {
        let is_same = std::ptr::eq(self, other); // perhaps without memory yet
        let start = |one: &Block| Some(if is_same { 0 } else { one.address()?.addr().get() });
        start(self).zip(start(other)).is_some_and(|(a, b)| {
            (a + range.start).max(b + theirs.start) < (a + range.end).min(b + theirs.end)
        })
    }

    /// Whether only graphs and the caller, which holds one reference, can see the block.
    pub fn is_unshared(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) == 1 + self.captures.load(Relaxed) as usize
    }

    /// Zeroes the block. The caller must have exclusive access to it.
    pub fn clear(&self) {
        if let Storage::Pooled(allocation) = &*self.storage() {
            self.device.pool().zero(allocation);
        }
    }

    /// Calls `f` with the bytes; memory is allocated if need be, as by [`Block::to_touch`]. Nobody may
    /// write them meanwhile: the caller holds the device's turn.
    ///
    /// # Errors
    /// As [`Block::to_touch`].
    #[allow(unsafe_code)]
    pub fn read<T>(&self, f: impl FnOnce(&[u8]) -> T) -> Result<T> {
        if !self.device.pool().backend().is_host() {
            return self.save().map(|bytes| f(&bytes));
        }
        let start = self.to_touch()?;
        // SAFETY: the block has memory of this size, which nobody writes meanwhile.
        Ok(f(unsafe { std::slice::from_raw_parts(start.as_ptr(), self.bytes) }))
    }

    /// A copy of the bytes; the caller holds the device's turn.
    ///
    /// # Errors
    /// As [`Block::to_touch`]; [`Error::OutOfMemory`] for the copy.
    pub fn save(&self) -> Result<Vec<u8>> {
        let mut saved = Vec::new();
        self.save_to(0..self.bytes, &mut saved)?;
        Ok(saved)
    }

    /// Copies bytes into a buffer that takes their length; the caller holds the device's turn.
    ///
    /// # Errors
    /// As [`Block::save`].
    pub fn save_to(&self, range: Range<usize>, saved: &mut Vec<u8>) -> Result<()> {
        let refusal = |_| self.device.pool().out_of_memory("save", range.len());
        saved.clear();
        saved.try_reserve_exact(range.len()).map_err(refusal)?;
        saved.resize(range.len(), 0);
        self.read_at(range.start, saved)
    }

    /// Copies the bytes from `start` on to the host; the caller holds the device's turn.
    ///
    /// # Errors
    /// As [`Block::to_touch`].
    #[allow(unsafe_code)]
    pub fn read_at(&self, start: usize, to: &mut [u8]) -> Result<()> {
        let fits = start.checked_add(to.len()).is_some_and(|end| end <= self.bytes);
        assert!(fits, "the bytes of a block");
        let first = self.to_touch()?;
        // SAFETY: the block has memory up to the end of these bytes, which nobody writes meanwhile.
        unsafe { self.device.pool().backend().download(first.byte_add(start), to) }
    }

    /// Writes all bytes; the caller holds the device's turn.
    ///
    /// # Errors
    /// As [`Block::to_overwrite`].
    pub fn write(&self, bytes: &[u8]) -> Result<()> {
        assert_eq!(bytes.len(), self.bytes, "the bytes of a block");
        self.write_at(0, bytes)
    }

    /// Writes bytes from `start` on; the caller holds the device's turn, and writes all bytes before
    /// anything reads one.
    ///
    /// # Errors
    /// As [`Block::to_overwrite`].
    #[allow(unsafe_code)]
    pub fn write_at(&self, start: usize, bytes: &[u8]) -> Result<()> {
        let fits = start.checked_add(bytes.len()).is_some_and(|end| end <= self.bytes);
        assert!(fits, "the bytes of a block");
        let first = self.to_overwrite()?;
        // SAFETY: the block has memory up to the end of these bytes, which nobody else uses
        // meanwhile.
        unsafe { self.device.pool().backend().upload(bytes, first.byte_add(start)) }
    }

    /// The ledger account that its memory is charged to.
    pub fn account(&self) -> Account {
        Account::from_index(self.account.load(Relaxed))
    }

    /// Moves the block to another account of the ledger.
    pub fn set_account(&self, account: Account) {
        let storage = self.storage();
        let before = Account::from_index(self.account.swap(account as u8, Relaxed));
        if let Storage::Pooled(allocation) = &*storage {
            self.device.pool().transfer(allocation, before, account);
        }
    }

    fn storage(&self) -> MutexGuard<'_, Storage> {
        locked(&self.storage)
    }
}

fn dangling() -> NonNull<u8> {
    NonNull::without_provenance(std::num::NonZero::new(ALIGNMENT).expect("alignment is not zero"))
}

impl Drop for Block {
    fn drop(&mut self) {
        let account = self.account();
        let storage = self.storage.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Storage::Pooled(allocation) = std::mem::replace(storage, Storage::None) {
            self.device.pool().give(allocation, account);
        }
    }
}

impl std::fmt::Debug for Block {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Block({} bytes, version {})", self.bytes, self.version())
    }
}
