//! A block is memory that may not exist yet.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU64, Ordering::*};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::device::pool::Piece;
use crate::device::{ALIGNMENT, Account, Device};
use crate::error::Result;

/// Keeps memory of another library alive for as long as a block uses it.
pub trait Owner: Send + Sync {}
impl<T: Send + Sync> Owner for T {}

enum Storage {
    /// From the device's pool; goes back to it.
    Pooled(Piece),
    /// Lent by another library (DLPack).
    Lent { _owner: Box<dyn Owner> },
}

/// Untyped memory on a device, given when it is first touched. Memory that was never written
/// reads as zero.
pub struct Block {
    device: Arc<Device>,
    bytes: usize,
    /// Null until there is memory; set once, so that reading it needs no lock.
    address: AtomicPtr<u8>,
    is_lent: bool,
    storage: Mutex<Option<Storage>>,
    version: AtomicU64,
    account: AtomicU8,
}

impl Block {
    /// A block without memory yet.
    pub fn new(device: &Arc<Device>, bytes: usize) -> Arc<Self> {
        Self::with(device, bytes, std::ptr::null_mut(), None)
    }

    /// A block on memory of another library, which `owner` keeps alive.
    pub fn foreign(
        device: &Arc<Device>,
        bytes: usize,
        pointer: NonNull<u8>,
        owner: Box<dyn Owner>,
    ) -> Arc<Self> {
        Self::with(device, bytes, pointer.as_ptr(), Some(Storage::Lent { _owner: owner }))
    }

    fn with(
        device: &Arc<Device>,
        bytes: usize,
        address: *mut u8,
        storage: Option<Storage>,
    ) -> Arc<Self> {
        Arc::new(Block {
            device: device.clone(),
            bytes,
            address: AtomicPtr::new(address),
            is_lent: storage.is_some(),
            storage: Mutex::new(storage),
            version: AtomicU64::new(0),
            account: AtomicU8::new(Account::Results as u8),
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

    /// Its address; memory that it does not have yet is made and zeroed.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`].
    pub fn to_touch(&self) -> Result<NonNull<u8>> {
        self.pointer(true)
    }

    /// Its address, for writing every byte: fresh memory is not zeroed first.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`].
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
        let mut storage = self.storage();
        if let Some(address) = self.address() {
            return Ok(address);
        }
        let piece = self.device.pool().take(self.bytes, self.account(), zeroed)?;
        let address = piece.pointer();
        *storage = Some(Storage::Pooled(piece));
        self.address.store(address.as_ptr(), Release);
        Ok(address)
    }

    /// Makes the block read as zero. The caller has the right to write it.
    pub fn clear(&self) {
        if let Some(Storage::Pooled(piece)) = &*self.storage() {
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
        if let Some(Storage::Pooled(piece)) = &*storage {
            self.device.ledger().release(before, piece.bytes());
            self.device.ledger().charge(account, piece.bytes());
        }
    }

    fn storage(&self) -> MutexGuard<'_, Option<Storage>> {
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
        if let Some(Storage::Pooled(piece)) = storage.take() {
            self.device.pool().give(piece, account);
        }
    }
}

impl std::fmt::Debug for Block {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Block({} bytes, version {})", self.bytes, self.version())
    }
}
