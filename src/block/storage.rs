//! Where a block's memory is, or what has to happen before it has any.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};

use super::Block;
use crate::device::pool::Allocation;
use crate::error::{Result, locked};

/// Keeps memory of another library alive for as long as a block uses it.
pub trait Owner: Send + Sync {}
impl<T: Send + Sync> Owner for T {}

/// What gives blocks their first values when one of them is needed.
pub trait Initialiser: Send + Sync {
    /// Writes every block that still waits for it.
    ///
    /// # Errors
    /// Whatever its operations say; then the blocks wait on.
    fn run(self: Arc<Self>) -> Result<()>;
}

pub(super) enum Storage {
    /// No memory yet; reads as zero.
    None,
    /// From the device's pool; goes back to it.
    Pooled(Allocation),
    /// Lent by another library (DLPack).
    Lent { _owner: Box<dyn Owner> },
    /// Written when it is first needed.
    Pending(Arc<dyn Initialiser>),
    /// Made by an operation that was recorded at this line of the user's program, so that there
    /// is no value before a graph runs.
    Recorded(Arc<str>),
}

static CHANGES: AtomicU64 = AtomicU64::new(0);

/// Counts how often a tensor object was pointed to another block, or the user's state changed
/// otherwise: while it stands still, what a recording saw of it holds.
pub fn changes() -> u64 {
    CHANGES.load(Relaxed)
}

/// Adds to [`changes`].
pub fn note_change() {
    CHANGES.fetch_add(1, Relaxed);
}

/// The block that the latest run of a graph wrote one of its results into.
#[derive(Default, Debug)]
pub struct Latest {
    block: Mutex<Option<Arc<Block>>>,
    /// Whether tensors show it.
    pub(super) is_followed: AtomicBool,
}

impl Latest {
    /// The block of the latest run, if there was one.
    pub fn get(&self) -> Option<Arc<Block>> {
        self.place().clone()
    }

    /// The block of the latest run if nobody but tensors that show it can see it, so that the
    /// next run may write it too.
    pub fn reusable(&self) -> Option<Arc<Block>> {
        self.place().as_ref().filter(|block| block.is_unshared()).cloned()
    }

    /// Points to the block of another run; whether tensors that show it changed thereby.
    pub fn set(&self, block: Arc<Block>) -> bool {
        let mut place = self.place();
        let moves = place.as_ref().is_some_and(|before| !Arc::ptr_eq(before, &block));
        let before = place.replace(block);
        drop(place);
        drop(before);
        let is_seen = moves && self.is_followed.load(Relaxed);
        if is_seen {
            note_change();
        }
        is_seen
    }

    fn place(&self) -> MutexGuard<'_, Option<Arc<Block>>> {
        locked(&self.block)
    }
}
