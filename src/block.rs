//! A block is memory that may not exist yet.

mod storage;

use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering::*};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::device::{ALIGNMENT, Account, Device};
use crate::error::{Error, Result};
use storage::Storage;
pub use storage::{Initialiser, Latest, Owner, changes, note_change};

/// Untyped memory on a device, given when it is first touched. Memory that was never written
/// reads as zero.
pub struct Block {
    device: Arc<Device>,
    bytes: usize,
    /// Null until there is memory; set once, so that reading it needs no lock.
    address: AtomicPtr<u8>,
    is_lent: bool,
    storage: Mutex<Storage>,
    version: AtomicU64,
    account: AtomicU8,
    /// How many graphs name the block as memory that is there before they run.
    captures: AtomicU32,
    /// How many other libraries hold the memory, each of which may write it.
    borrowers: AtomicU32,
    /// How many tensor objects that showed the block were pointed to another one.
    departures: AtomicU32,
    /// Set where the block only stands for what each run of a graph makes.
    latest: OnceLock<Arc<Latest>>,
}

impl Block {
    /// A block without memory yet.
    pub fn new(device: &Arc<Device>, bytes: usize) -> Arc<Self> {
        Self::with(device, bytes, std::ptr::null_mut(), Storage::None)
    }

    /// A block that stands for what an operation will make, which was recorded at this line of
    /// the user's program. Its memory may be overwritten, but not read.
    pub fn recorded(device: &Arc<Device>, bytes: usize, line: Arc<str>) -> Arc<Self> {
        Self::with(device, bytes, std::ptr::null_mut(), Storage::Recorded(line))
    }

    /// A block on memory of another library, which `owner` keeps alive.
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
        })
    }

    /// The device that the block is on.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many writes have been submitted to it.
    pub fn version(&self) -> u64 {
        self.version.load(Relaxed)
    }

    /// Notes that a write was submitted.
    pub fn touch(&self) {
        self.version.fetch_add(1, Relaxed);
    }

    /// Whether it has memory.
    pub fn is_allocated(&self) -> bool {
        self.address().is_some()
    }

    /// The address, if it has memory.
    pub fn address(&self) -> Option<NonNull<u8>> {
        NonNull::new(self.address.load(Acquire))
    }

    /// Whether the memory is another library's, so that other blocks may name it too.
    pub fn is_lent(&self) -> bool {
        self.is_lent
    }

    /// Notes that another library holds the memory, until [`Block::take_back`].
    pub fn lend(&self) {
        self.borrowers.fetch_add(1, Relaxed);
    }

    /// Notes that a library that was lent the memory holds it no more. It may have written it.
    pub fn take_back(&self) {
        self.touch();
        self.borrowers.fetch_sub(1, Relaxed);
    }

    /// Whether another library may write the memory, which its version does not tell.
    pub fn is_exposed(&self) -> bool {
        self.is_lent || self.borrowers.load(Relaxed) > 0
    }

    /// Its address; memory that it does not have yet is made, and zeroed or initialised.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; [`Error::Graph`] where the value is only recorded; what a pending
    /// initialiser says.
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
        if zeroed && let Some(initialiser) = self.initialiser()? {
            initialiser.run()?;
        }
        let mut storage = self.storage();
        if let Some(address) = self.address() {
            return Ok(address);
        }
        let piece = self.device.pool().take(self.bytes, self.account(), zeroed)?;
        let address = piece.pointer();
        *storage = Storage::Pooled(piece);
        self.address.store(address.as_ptr(), Release);
        Ok(address)
    }

    /// What has to write the block before it can be read.
    fn initialiser(&self) -> Result<Option<Arc<dyn Initialiser>>> {
        match &*self.storage() {
            Storage::Pending(initialiser) => Ok(Some(initialiser.clone())),
            Storage::Recorded(line) => Err(Error::Graph {
                op: "tensor".into(),
                message: format!(
                    "the operation that makes its value was only recorded, at {line}, and has \
                     not run"
                ),
            }),
            _ => Ok(None),
        }
    }

    /// Where the user's program asked for the operation that makes the block's value, which has
    /// not run.
    pub fn recorded_at(&self) -> Option<Arc<str>> {
        match &*self.storage() {
            Storage::Recorded(line) if !self.is_allocated() => Some(line.clone()),
            _ => None,
        }
    }

    /// Whether a value is still to come: from an initialiser, or from a graph that has not run.
    pub fn is_waiting(&self) -> bool {
        matches!(&*self.storage(), Storage::Pending(_) | Storage::Recorded(_))
    }

    /// Takes back memory that an initialiser failed to fill; it will be tried again.
    pub fn retract(&self, initialiser: Arc<dyn Initialiser>) {
        let mut storage = self.storage();
        self.address.store(std::ptr::null_mut(), Release);
        if let Storage::Pooled(piece) =
            std::mem::replace(&mut *storage, Storage::Pending(initialiser))
        {
            self.device.pool().give(piece, self.account());
        }
    }

    /// Leaves the block's first value to an initialiser, unless it has memory already.
    pub fn postpone(&self, initialiser: Arc<dyn Initialiser>) {
        let mut storage = self.storage();
        if matches!(*storage, Storage::None) {
            *storage = Storage::Pending(initialiser);
        }
    }

    /// Whether the block waits for an initialiser; from now on it does not.
    pub fn take_pending(&self) -> bool {
        let mut storage = self.storage();
        let is_pending = matches!(*storage, Storage::Pending(_));
        if is_pending {
            *storage = Storage::None;
        }
        is_pending
    }

    /// From now on the block stands for what `latest` names, unless it stands for something
    /// already; what it stands for.
    pub fn follow(&self, latest: &Arc<Latest>) -> &Arc<Latest> {
        let latest = self.latest.get_or_init(|| latest.clone());
        latest.is_followed.store(true, Relaxed);
        latest
    }

    /// Whether the block stands for what a graph makes.
    pub fn shows_runs(&self) -> bool {
        self.latest.get().is_some()
    }

    /// The block that this one stands for, if the graph that makes it has run.
    pub fn current(&self) -> Option<Arc<Block>> {
        self.latest.get()?.get()
    }

    /// Notes that a graph names the block as its own input; `false` that it no longer does.
    pub fn set_captured(&self, by_one_more: bool) {
        if by_one_more {
            self.captures.fetch_add(1, Relaxed);
        } else {
            self.captures.fetch_sub(1, Relaxed);
        }
    }

    /// How many tensor objects that showed the block were pointed to another one.
    pub fn departures(&self) -> u32 {
        self.departures.load(Relaxed)
    }

    /// Notes that a tensor object was pointed to another block.
    pub fn note_departure(&self) {
        self.departures.fetch_add(1, Relaxed);
    }

    /// Whether two blocks are on the same bytes, as memory of another library may be.
    pub fn meets(&self, other: &Block) -> bool {
        let range = |block: &Block| {
            let start = block.address()?.addr().get();
            Some(start..start + block.bytes)
        };
        range(self).zip(range(other)).is_some_and(|(a, b)| a.start < b.end && b.start < a.end)
    }

    /// Whether nobody but graphs and the caller, who holds it once, can see the block.
    pub fn is_unshared(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) == 1 + self.captures.load(Relaxed) as usize
    }

    /// Makes the block read as zero. The caller has the right to write it.
    pub fn clear(&self) {
        if let Storage::Pooled(piece) = &*self.storage() {
            self.device.pool().zero(piece);
        }
    }

    /// The account of the ledger that its memory is entered in.
    pub fn account(&self) -> Account {
        Account::from_index(self.account.load(Relaxed))
    }

    /// Moves the block to another account of the ledger.
    pub fn set_account(&self, account: Account) {
        let storage = self.storage();
        let before = Account::from_index(self.account.swap(account as u8, Relaxed));
        if let Storage::Pooled(piece) = &*storage {
            self.device.pool().transfer(piece, before, account);
        }
    }

    fn storage(&self) -> MutexGuard<'_, Storage> {
        self.storage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn dangling() -> NonNull<u8> {
    NonNull::without_provenance(std::num::NonZero::new(ALIGNMENT).expect("alignment is not zero"))
}

impl Drop for Block {
    fn drop(&mut self) {
        let account = self.account();
        let storage = self.storage.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Storage::Pooled(piece) = std::mem::replace(storage, Storage::None) {
            self.device.pool().give(piece, account);
        }
    }
}

impl std::fmt::Debug for Block {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Block({} bytes, version {})", self.bytes, self.version())
    }
}
