//! A caching allocator: freed memory is kept by size class for the next request. Used by eager
//! execution and for results; a recorded graph plans its own arena.
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard};

use rustc_hash::FxHashMap;

use super::ledger::{Account, Ledger};
use super::live::Live;
use super::{ALIGNMENT, Backend, process};
use crate::error::{Error, Result, Usage, locked};

/// Memory from the pool, which must be returned to it.
#[derive(Debug)]
pub struct Allocation {
    pointer: NonNull<u8>,
    bytes: usize,
}

// SAFETY: an allocation is plain memory with a single owner.
unsafe impl Send for Allocation {}
// SAFETY: a shared allocation exposes only its address and size.
unsafe impl Sync for Allocation {}

impl Allocation {
    /// Its address.
    pub fn pointer(&self) -> NonNull<u8> {
        self.pointer
    }

    /// Its size, rounded up to its size class.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// An [`Allocation`] on loan, used as workspace.
pub struct Loan<'a> {
    pool: &'a Pool,
    allocation: Option<Allocation>,
    account: Account,
}

impl Loan<'_> {
    /// Its address.
    pub fn pointer(&self) -> *mut u8 {
        self.allocation
            .as_ref()
            .map_or(std::ptr::null_mut(), |allocation| allocation.pointer.as_ptr())
    }
}

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        if let Some(allocation) = self.allocation.take() {
            self.pool.give(allocation, self.account);
        }
    }
}

/// Freed memory may take this many times the most memory that was in use, and at least so many
/// bytes: a step whose tensors have many sizes leaves about twice as much as it uses.
const MOST_TIMES: usize = 2;
const LEAST_BOUND: usize = 64 << 20;

/// Freed memory by size class, each with the time at which it was freed, the latest last.
#[derive(Default)]
struct FreeLists {
    classes: FxHashMap<usize, VecDeque<(u64, Allocation)>>,
    time: u64,
}

impl FreeLists {
    fn push(&mut self, allocation: Allocation) {
        self.time += 1;
        self.classes.entry(allocation.bytes).or_default().push_back((self.time, allocation));
    }

    /// What was freed last of a class, which is most likely in a cache.
    fn latest(&mut self, bytes: usize) -> Option<Allocation> {
        self.classes.get_mut(&bytes)?.pop_back().map(|(_, allocation)| allocation)
    }

    /// What has been free for the longest time.
    fn oldest(&mut self) -> Option<Allocation> {
        self.classes.retain(|_, class| !class.is_empty());
        let oldest = self.classes.values_mut().min_by_key(|class| class.front().map(|one| one.0));
        oldest?.pop_front().map(|(_, allocation)| allocation)
    }
}

/// See the module's documentation.
pub struct Pool {
    device: &'static str,
    backend: Box<dyn Backend>,
    free: Mutex<FreeLists>,
    live: Live,
    ledger: Ledger,
}

impl Pool {
    /// An empty pool in front of `backend`.
    pub fn new(device: &'static str, backend: Box<dyn Backend>) -> Self {
        let (free, live, ledger) = Default::default();
        Pool { device, backend, free, live, ledger }
    }

    /// Where the memory comes from.
    pub fn backend(&self) -> &dyn Backend {
        &*self.backend
    }

    /// Whether this many more bytes can be allocated, after releasing cached memory if need be.
    pub fn has(&self, bytes: usize) -> bool {
        if bytes > self.backend.available(bytes) {
            self.trim();
        }
        bytes <= self.backend.available(bytes)
    }

    /// The same for memory whose addresses are already reserved.
    pub fn can_fill(&self, bytes: usize) -> bool {
        if bytes > self.backend.fillable(bytes) {
            self.trim();
        }
        bytes <= self.backend.fillable(bytes)
    }

    /// The memory ledger.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Memory of at least `bytes`, uninitialised unless `zeroed`.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if neither the pool nor the machine has it, even after cached memory
    /// of other sizes has been released to the machine.
    pub fn take(&self, bytes: usize, account: Account, zeroed: bool) -> Result<Allocation> {
        let wanted = bytes;
        let bytes = size_class(wanted).ok_or_else(|| self.out_of_memory("allocate", wanted))?;
        let cached = self.free().latest(bytes);
        let allocation = match cached {
            Some(allocation) => {
                self.ledger.release(Account::Pool, bytes);
                allocation
            }
            None => self.fresh(bytes).ok_or_else(|| self.out_of_memory("allocate", wanted))?,
        };
        self.ledger.charge(account, bytes);
        self.live.enter(&allocation, wanted, account);
        if zeroed {
            self.zero(&allocation);
        }
        Ok(allocation)
    }

    /// Memory that returns to the pool when the loan is dropped, even by a panic.
    ///
    /// # Errors
    /// As [`Pool::take`].
    pub fn lend(&self, bytes: usize, account: Account) -> Result<Loan<'_>> {
        Ok(Loan { pool: self, allocation: Some(self.take(bytes, account, false)?), account })
    }

    /// Zeroes an allocation. The caller must have exclusive access to it.
    pub fn zero(&self, allocation: &Allocation) {
        // SAFETY: an allocation is memory of this device, to which its holder has exclusive access.
        unsafe { self.backend.fill(allocation.pointer, 0, allocation.bytes) };
    }

    /// Returns an allocation, which is kept for the next request of its size class. What has been
    /// kept for longest is released if it is too much.
    pub fn give(&self, allocation: Allocation, account: Account) {
        if process::is_orphan() {
            return; // the lists' lock may be held forever; the memory dies with the process
        }
        self.live.leave(&allocation);
        self.ledger.release(account, allocation.bytes);
        self.ledger.charge(Account::Pool, allocation.bytes);
        self.free().push(allocation);
        let most = MOST_TIMES.saturating_mul(self.ledger.peak()).max(LEAST_BOUND);
        if self.ledger.balance(Account::Pool) <= most {
            return;
        }
        // A GPU waits for its work before it releases memory, so that much is released at once.
        while self.ledger.balance(Account::Pool) > most / 2 {
            let Some(oldest) = self.free().oldest() else { break };
            self.release(&oldest);
        }
    }

    /// Gives cached memory back to the machine.
    fn release(&self, allocation: &Allocation) {
        self.ledger.release(Account::Pool, allocation.bytes);
        // SAFETY: the allocation came from this backend, and nobody else holds it.
        unsafe { self.backend.free(allocation.pointer, allocation.bytes) };
    }

    /// Moves an allocation in use from one account to another.
    pub fn transfer(&self, allocation: &Allocation, from: Account, to: Account) {
        self.ledger.release(from, allocation.bytes);
        self.ledger.charge(to, allocation.bytes);
        self.live.set_account(allocation, to);
    }

    /// Releases all cached memory to the machine; returns the number of bytes.
    pub fn trim(&self) -> usize {
        let lists = std::mem::take(&mut self.free().classes);
        let all = lists.into_values().flatten().map(|(_, allocation)| allocation);
        all.inspect(|allocation| self.release(allocation)).map(|allocation| allocation.bytes).sum()
    }

    fn fresh(&self, bytes: usize) -> Option<Allocation> {
        let pointer = self.has(bytes).then(|| self.backend.allocate(bytes)).flatten()?;
        Some(Allocation { pointer, bytes })
    }

    /// The error for an allocation of `requested` bytes that failed in operation `op`.
    pub fn out_of_memory(&self, op: &'static str, requested: usize) -> Error {
        let in_use = self.ledger.in_use();
        let bound = in_use.saturating_sub(self.live.lost());
        Error::OutOfMemory {
            op: op.into(),
            device: self.device,
            requested,
            in_use,
            available: self.backend.available(usize::MAX), // forces a new reading
            usage: Box::new(Usage::new(bound, in_use, self.live.tensors())),
        }
    }

    fn free(&self) -> MutexGuard<'_, FreeLists> {
        locked(&self.free)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.trim();
    }
}

/// Rounds up so that similar sizes share a list; wastes at most an eighth. `None` on overflow.
fn size_class(bytes: usize) -> Option<usize> {
    let bytes = bytes.max(1);
    let grain = (bytes.checked_next_power_of_two()? / 16).max(ALIGNMENT);
    bytes.checked_next_multiple_of(grain).filter(|&b| b <= isize::MAX as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn a_class_holds_its_size_and_wastes_at_most_an_eighth(bytes in 1usize..1 << 40) {
            let class = size_class(bytes).unwrap();
            proptest::prop_assert!(class >= bytes && class.is_multiple_of(ALIGNMENT));
            proptest::prop_assert!(class - bytes <= (bytes / 8).max(ALIGNMENT));
            proptest::prop_assert_eq!(size_class(class), Some(class));
        }
    }

    #[test]
    fn freed_memory_of_many_sizes_is_bounded() {
        let device = crate::device::cpu::fresh();
        let pool = device.pool();
        for n in 1..200 {
            let held = pool.take(n << 20, Account::Results, false).unwrap();
            pool.give(held, Account::Results);
            let (cached, peak) = (pool.ledger().balance(Account::Pool), pool.ledger().peak());
            assert!(cached <= LEAST_BOUND.max(MOST_TIMES * peak), "{cached} bytes, peak {peak}");
        }
        // What was freed last is still there.
        assert!(pool.free().latest(size_class(199 << 20).unwrap()).is_some());
    }

    #[test]
    fn sizes_beyond_the_address_space_are_refused() {
        assert_eq!(size_class(usize::MAX), None);
    }
}
