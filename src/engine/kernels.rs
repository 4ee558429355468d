//! The cache of prepared operations: equal operations on equal metas share one kernel.

use std::num::NonZero;
use std::sync::Arc;

use lru::LruCache;
use rustc_hash::FxBuildHasher;

use crate::device::{Account, Device};
use crate::error::Result;
use crate::kernels::prepared::{Prepared, hash};
use crate::ops::{Kind, Meta, View};

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
pub struct Kernels {
    device: Arc<Device>,
    cache: LruCache<u64, Entry, FxBuildHasher>,
}

impl Kernels {
    pub fn new(device: &Arc<Device>) -> Self {
        let cache = LruCache::with_hasher(CAPACITY, FxBuildHasher);
        Kernels { device: device.clone(), cache }
    }

    /// An operation from the cache, prepared if it is new.
    pub fn get(
        &mut self,
        kind: &Kind,
        inputs: &[View],
        given: Option<&[View]>,
    ) -> Result<&Arc<Prepared>> {
        self.shrink();
        let (device, threads) = (&self.device, self.device.threads());
        let make = || Ok(Entry::new(Prepared::new(kind, inputs, given, threads)?, device));
        let key = hash(kind, inputs, given, threads);
        let entry = self.cache.try_get_or_insert_mut(key, make)?;
        // On a hash collision the entry is replaced.
        if !entry.op.fits(kind, inputs, given, threads) {
            *entry = make()?;
        }
        Ok(&entry.op)
    }

    /// An operation into new tensors from the cache, if it is prepared and short.
    pub fn find_short(&mut self, kind: &Kind, inputs: &[View]) -> Option<&Arc<Prepared>> {
        let threads = self.device.threads();
        let entry = self.cache.get(&hash(kind, inputs, None, threads))?;
        Some(&entry.op).filter(|op| op.is_short && op.fits(kind, inputs, None, threads))
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
