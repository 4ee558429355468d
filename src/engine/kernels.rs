//! The cache of prepared kernels: equal operations on equal metas share one.

use std::hash::{Hash, Hasher};
use std::num::NonZero;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;
use rustc_hash::{FxBuildHasher, FxHasher};
use smallvec::SmallVec;

use crate::device::Device;
use crate::error::Result;
use crate::ops::{Kernel, Kind, Meta, Op, Width};

/// How many kernels are kept: the ones used last.
const CAPACITY: NonZero<usize> = NonZero::new(8192).unwrap();

struct Prepared {
    kind: Kind,
    metas: SmallVec<[Arc<Meta>; 4]>,
    threads: usize,
    kernel: Arc<dyn Kernel>,
}

impl Prepared {
    fn fits(&self, op: &Op, threads: usize) -> bool {
        self.threads == threads && self.kind == op.kind && self.metas.iter().eq(metas(op))
    }
}

/// See the module's documentation.
pub struct Kernels {
    device: Arc<Device>,
    cache: Mutex<LruCache<u64, Prepared, FxBuildHasher>>,
}

impl Kernels {
    pub fn new(device: &Arc<Device>) -> Self {
        let cache = LruCache::with_hasher(CAPACITY, FxBuildHasher);
        Kernels { device: device.clone(), cache: Mutex::new(cache) }
    }

    /// The kernel of an operation, prepared if it is new.
    pub fn get(&self, op: &Op) -> Result<Arc<dyn Kernel>> {
        let threads = self.device.threads();
        let key = hash(op, threads);
        // An entry of another operation with the same hash is replaced.
        if let Some(found) = self.cache().get(&key).filter(|p| p.fits(op, threads)) {
            return Ok(found.kernel.clone());
        }
        let kernel = prepare(op, threads)?;
        let metas = metas(op).cloned().collect();
        let entry = Prepared { kind: op.kind.clone(), metas, threads, kernel: kernel.clone() };
        self.cache().put(key, entry);
        Ok(kernel)
    }

    /// Forgets all kernels.
    pub fn clear(&self) {
        self.cache().clear();
    }

    fn cache(&self) -> MutexGuard<'_, LruCache<u64, Prepared, FxBuildHasher>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn metas(op: &Op) -> impl Iterator<Item = &Arc<Meta>> {
    op.inputs.iter().chain(&op.outputs).map(|v| &v.meta)
}

fn hash(op: &Op, threads: usize) -> u64 {
    let mut hasher = FxHasher::default();
    (&op.kind, threads).hash(&mut hasher);
    metas(op).for_each(|m| m.hash(&mut hasher));
    hasher.finish()
}

fn prepare(op: &Op, threads: usize) -> Result<Arc<dyn Kernel>> {
    let io: SmallVec<[&Meta; 4]> = metas(op).map(|m| &**m).collect();
    let family = op.kind.family();
    family.cpu(&io, Width::of(family.cost(&io), threads))
}
