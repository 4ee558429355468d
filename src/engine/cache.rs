//! The cache of prepared operations: equal calls share one kernel.

use std::num::NonZero;
use std::sync::Arc;

use lru::LruCache;
use rustc_hash::FxBuildHasher;

use crate::device::{Account, Device};
use crate::error::Result;
use crate::kernels::Prepared;
use crate::ops::call::{Metas, Parts};
use crate::ops::{Call, Kind, Meta, View};

/// The most operations in the cache; the least recently used are evicted.
const CAPACITY: NonZero<usize> = NonZero::new(8192).unwrap();
/// The most bytes that they may hold.
const CAPACITY_BYTES: usize = 256 << 20;

/// A prepared operation in the cache, charged to the ledger.
struct Entry {
    op: Arc<Prepared>,
    device: Arc<Device>,
    bytes: usize,
}

impl Entry {
    fn new(op: Prepared, device: &Arc<Device>) -> Self {
        let metas = (op.inputs.len() + op.outputs.len()) * size_of::<Meta>();
        let bytes = size_of::<Self>() + size_of::<Prepared>() + metas + op.kernel.bytes();
        device.ledger().charge(Account::Kernels, bytes);
        Entry { op: Arc::new(op), device: device.clone(), bytes }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.device.ledger().release(Account::Kernels, self.bytes);
    }
}

/// See the module's documentation.
pub struct KernelCache {
    device: Arc<Device>,
    cache: LruCache<u64, Entry, FxBuildHasher>,
}

impl KernelCache {
    pub fn new(device: &Arc<Device>) -> Self {
        let cache = LruCache::with_hasher(CAPACITY, FxBuildHasher);
        KernelCache { device: device.clone(), cache }
    }

    /// An operation from the cache, prepared if it is new.
    pub fn get(
        &mut self,
        kind: &Kind,
        inputs: &[View],
        given: Option<&[View]>,
    ) -> Result<&Arc<Prepared>> {
        let parts = Parts { kind, inputs, given };
        self.cached(parts, || Ok(Arc::new(parts.call()?)))
    }

    /// A call from the cache, prepared if it is new.
    pub fn of(&mut self, call: &Arc<Call>) -> Result<&Arc<Prepared>> {
        self.cached(call.parts(), || Ok(call.clone()))
    }

    fn cached<'a>(
        &mut self,
        parts: Parts<'a, impl Metas<'a>>,
        call: impl Fn() -> Result<Arc<Call>>,
    ) -> Result<&Arc<Prepared>> {
        self.shrink();
        let (device, threads) = (&self.device, self.device.threads());
        let make = || Ok(Entry::new(Prepared::new(call()?, device, threads)?, device));
        let entry = self.cache.try_get_or_insert_mut(parts.hash(threads), make)?;
        // On a hash collision the entry is replaced.
        if entry.op.threads != threads || !parts.are_of(&entry.op) {
            *entry = make()?;
        }
        Ok(&entry.op)
    }

    /// An operation into new tensors from the cache, if it is prepared and short.
    pub fn find_short(&mut self, kind: &Kind, inputs: &[View]) -> Option<&Arc<Prepared>> {
        let (threads, parts) = (self.device.threads(), Parts { kind, inputs, given: None });
        let op = &self.cache.get(&parts.hash(threads))?.op;
        Some(op).filter(|op| op.is_short && op.threads == threads && parts.are_of(op))
    }

    /// Puts an operation into the cache, whatever its kernel computes.
    #[cfg(test)]
    pub fn insert(&mut self, op: Prepared) {
        let key = op.parts().hash(op.threads);
        self.cache.put(key, Entry::new(op, &self.device));
    }

    fn shrink(&mut self) {
        let held = || self.device.ledger().balance(Account::Kernels);
        while held() > CAPACITY_BYTES && self.cache.pop_lru().is_some() {}
    }

    /// Drops all kernels.
    pub fn clear(&mut self) {
        self.cache.clear();
    }
}
