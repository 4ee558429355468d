//! The cache of prepared operations: equal operations on equal metas share one kernel.

use std::hash::{Hash, Hasher};
use std::num::NonZero;
use std::sync::Arc;

use lru::LruCache;
use rustc_hash::{FxBuildHasher, FxHasher};
use smallvec::SmallVec;

use crate::device::{Account, Device};
use crate::error::{Error, Result};
use crate::ops::{Effects, Kernel, Kind, Meta, View, Width};
use crate::view;

/// How many operations are kept: the ones used last.
const CAPACITY: NonZero<usize> = NonZero::new(8192).unwrap();
/// How many bytes their kernels may hold.
const CAPACITY_BYTES: usize = 256 << 20;
/// An operation that moves fewer bytes than this, and computes a few numbers a byte, is short.
const SHORT_BYTES: u64 = 256 << 10;

/// The metas of an operation's outputs, shared with the tensors that it makes.
type OutputMetas = SmallVec<[Arc<Meta>; 2]>;

/// An operation on tensors of certain metas, ready to run.
pub struct Prepared {
    kind: Kind,
    inputs: SmallVec<[Arc<Meta>; 4]>,
    /// The outputs, as they are inferred or, where those were given, as they really are.
    pub outputs: OutputMetas,
    are_given: bool,
    threads: usize,
    /// What it does besides writing its outputs.
    pub effects: Effects,
    /// What computes the outputs.
    pub kernel: Arc<dyn Kernel>,
    /// Whether to wait for another thread would take longer than to run it.
    is_short: bool,
}

/// A prepared operation in the cache, entered in the ledger.
struct Entry {
    op: Prepared,
    device: Arc<Device>,
    bytes: usize,
}

impl Entry {
    fn new(op: Prepared, device: &Arc<Device>) -> Self {
        let metas = (op.inputs.len() + op.outputs.len()) * size_of::<Meta>();
        let bytes = size_of::<Self>() + metas + op.kernel.bytes();
        device.ledger().charge(Account::Kernels, bytes);
        Entry { op, device: device.clone(), bytes }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.device.ledger().release(Account::Kernels, self.bytes);
    }
}

impl Prepared {
    /// Infers and checks an operation, and prepares its kernel. Outputs may be given where they
    /// have other strides than those inferred.
    pub fn new(
        kind: &Kind,
        inputs: &[View],
        given: Option<&[View]>,
        threads: usize,
    ) -> Result<Self> {
        let ins = metas(inputs).map(|m| &**m).collect::<SmallVec<[&Meta; 4]>>();
        let outputs = match given {
            Some(views) => metas(views).cloned().collect(),
            None => infer(kind, inputs, &ins)?,
        };
        let (kernel, is_short) = kernel(kind, &ins, &outputs, threads)?;
        Ok(Prepared {
            kind: kind.clone(),
            inputs: metas(inputs).cloned().collect(),
            outputs,
            are_given: given.is_some(),
            threads,
            effects: kind.family().effects(),
            kernel,
            is_short,
        })
    }

    fn fits(&self, kind: &Kind, inputs: &[View], given: Option<&[View]>, threads: usize) -> bool {
        self.threads == threads
            && self.are_given == given.is_some()
            && self.kind == *kind
            && are(&self.inputs, inputs)
            && given.is_none_or(|outputs| are(&self.outputs, outputs))
    }

    /// The input that output `o` is one memory with.
    pub fn state_of(&self, o: usize) -> Option<usize> {
        self.effects.state.iter().find(|pair| pair.1 == o).map(|pair| pair.0)
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

    /// An operation, prepared if it is new.
    pub fn get(
        &mut self,
        kind: &Kind,
        inputs: &[View],
        given: Option<&[View]>,
    ) -> Result<&Prepared> {
        self.shrink();
        let (device, threads) = (&self.device, self.device.threads());
        let make = || Ok(Entry::new(Prepared::new(kind, inputs, given, threads)?, device));
        let key = hash(kind, inputs, given, threads);
        let entry = self.cache.try_get_or_insert_mut(key, make)?;
        // An entry of another operation with the same hash is replaced.
        if !entry.op.fits(kind, inputs, given, threads) {
            *entry = make()?;
        }
        Ok(&entry.op)
    }

    /// An operation into new tensors, if it is prepared and short.
    pub fn find_short(&mut self, kind: &Kind, inputs: &[View]) -> Option<&Prepared> {
        let threads = self.device.threads();
        let entry = self.cache.get(&hash(kind, inputs, None, threads))?;
        Some(&entry.op).filter(|op| op.is_short && op.fits(kind, inputs, None, threads))
    }

    fn shrink(&mut self) {
        let held = || self.device.ledger().balance(Account::Kernels);
        while held() > CAPACITY_BYTES && self.cache.pop_lru().is_some() {}
    }

    /// Forgets all kernels.
    pub fn clear(&mut self) {
        self.cache.clear();
    }
}

fn metas(views: &[View]) -> impl Iterator<Item = &Arc<Meta>> {
    views.iter().map(|v| &v.meta)
}

fn are(metas: &[Arc<Meta>], views: &[View]) -> bool {
    metas.len() == views.len() && metas.iter().zip(views).all(|(m, v)| *m == v.meta)
}

fn hash(kind: &Kind, inputs: &[View], given: Option<&[View]>, threads: usize) -> u64 {
    let mut hasher = FxHasher::default();
    (kind, threads).hash(&mut hasher);
    metas(inputs).chain(metas(given.unwrap_or_default())).for_each(|m| m.hash(&mut hasher));
    hasher.finish()
}

/// What the family infers, but for state, which stays as it is.
fn infer(kind: &Kind, inputs: &[View], metas: &[&Meta]) -> Result<OutputMetas> {
    let name = kind.family().name();
    let mut outputs = OutputMetas::new();
    for meta in kind.family().infer(metas)? {
        meta.shape.checked_numel(name)?;
        outputs.push(Arc::new(meta));
    }
    for &(i, o) in kind.family().effects().state {
        let got = || format!("an expanded input {i}");
        let want = "each element in a place of its own, since it is updated";
        crate::ensure!(!view::repeats(metas[i]), Error::value(name, got(), want));
        outputs[o] = inputs[i].meta.clone();
    }
    Ok(outputs)
}

/// The kernel, and whether it is short.
fn kernel(
    kind: &Kind,
    inputs: &[&Meta],
    outputs: &[Arc<Meta>],
    threads: usize,
) -> Result<(Arc<dyn Kernel>, bool)> {
    let io: SmallVec<[&Meta; 8]> =
        inputs.iter().copied().chain(outputs.iter().map(|m| &**m)).collect();
    let cost = kind.family().cost(&io);
    let is_short = cost.bytes.max(cost.flops / 4) < SHORT_BYTES;
    Ok((kind.family().cpu(&io, Width::of(cost, threads))?, is_short))
}
