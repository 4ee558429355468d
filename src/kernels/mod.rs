//! How operations run on a processor.
#![allow(unsafe_code)]

pub mod cpu;
pub mod cuda;
mod execute;
mod finite;
pub mod kernel;
pub mod prepared;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

use std::sync::{Arc, PoisonError, RwLock};

use crate::device::{Device, Stream};
use crate::dtype::DType;
use crate::error::Result;
use crate::error::finite::Statistics;
use crate::ops::region::Region;
use crate::ops::{Kind, Meta};
pub use cuda::gpus as gpu;
pub use execute::check_finite;
pub use kernel::{Captured, Capturing, Io, Kernel, Packing, Width, checked, kernel};
pub use prepared::Prepared;

/// A kind of processor: what runs there, and what is worth doing there.
pub trait Target: Send + Sync {
    /// Prepares the kernel of an operation; `io` are the inputs, then the outputs with their
    /// actual metas.
    ///
    /// # Errors
    /// Those of the kernels: what the operation's inference rejects, and those of libraries.
    fn prepare(&self, kind: &Kind, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>>;

    /// The same in two parts, if it is faster on an input in a packed layout. The results are
    /// bit-identical.
    ///
    /// # Errors
    /// As [`Target::prepare`].
    fn packing(&self, kind: &Kind, io: &[&Meta], width: Width) -> Result<Option<Packing>>;

    /// Whether a region can start with this operation.
    fn is_producer(&self, kind: &Kind) -> bool;

    /// Whether an operation's result is computed in blocks, each of which other operations can
    /// find in the cache; `io` are the inputs and the result.
    fn is_split(&self, kind: &Kind, io: &[&Meta]) -> bool;

    /// Whether a region with these values, its inputs and all results, runs block by block.
    fn is_blocked(&self, region: &Region, values: &[Meta]) -> bool;

    /// Whether the sums of an inexact region's producer start from the addend.
    fn starts_sums(&self, region: &Region, values: &[Meta]) -> bool;

    /// Whether an inexact region's convolution multiplies what it makes by a function of that.
    fn gates(&self, region: &Region, values: &[Meta]) -> bool;

    /// When fusing pays off.
    fn fusing(&self) -> Fusing;

    /// The instruction set that kernels use.
    fn instructions(&self) -> &'static str;

    /// The stream that operations and graphs run on.
    fn stream(&self) -> Stream;

    /// Waits until the stream has done all its work.
    ///
    /// # Errors
    /// Those of work that failed.
    fn wait(&self) -> Result<()> {
        Ok(())
    }

    /// How work on the stream is captured; None where it has run when it is put there.
    fn capturing(&self) -> Option<&dyn Capturing> {
        None
    }

    /// Whether products of a type are computed in it, rather than in a wider one.
    ///
    /// # Errors
    /// Those of libraries.
    fn computes_in(&self, dtype: DType) -> Result<bool>;

    /// Whether every number of a tensor is finite; integers always are.
    ///
    /// # Safety
    /// `first` is the address of the first element of a tensor of this meta, which is not written
    /// meanwhile.
    unsafe fn is_finite(&self, meta: &Meta, first: *const u8) -> bool;

    /// The statistics of a tensor's numbers, skipping broadcast repetitions.
    ///
    /// # Safety
    /// As [`Target::is_finite`].
    unsafe fn statistics(&self, meta: &Meta, first: *const u8) -> Statistics;
}

/// The sizes of results, in bytes, for which fusing pays off, and the limits of a fused operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fusing {
    /// Up to this size, operations are so short that the overhead of a call matters.
    pub short: usize,
    /// From this size on, results of operations on rows are evicted from the cache between two of
    /// them. Fetching smaller ones from there takes less time than the operations.
    pub large_rows: usize,
    /// From this size on, folding a result piece by piece takes less time than folding it later.
    pub folded: usize,
    /// The most inputs of a region: with more, the blocks of all of them exceed the cache.
    pub inputs: usize,
    /// The most links of a region.
    pub links: usize,
}

impl Fusing {
    /// Results of any size.
    pub const NONE: Fusing =
        Fusing { short: usize::MAX, large_rows: 0, folded: 0, inputs: 8, links: 16 };
}

/// The device whose memory is the host's.
pub fn host() -> &'static Arc<Device> {
    crate::device::cpu::device()
}

/// The targets, by the names and numbers of the devices that they run.
static TARGETS: RwLock<Vec<(Name, &dyn Target)>> = RwLock::new(Vec::new());

/// What tells devices apart.
type Name = (&'static str, i32);

/// Lets a target run the operations of all devices of this one's name and number, unless one does
/// already.
pub fn register(device: &Device, target: &'static dyn Target) {
    let mut targets = TARGETS.write().unwrap_or_else(PoisonError::into_inner);
    let name = (device.name(), device.id());
    if targets.iter().all(|(known, _)| *known != name) {
        targets.push((name, target));
    }
}

/// The target that runs a device's operations; None for a device that runs none.
pub fn target(device: &Device) -> Option<&'static dyn Target> {
    if device.name() == host().name() {
        return Some(&cpu::Cpu);
    }
    let targets = TARGETS.read().unwrap_or_else(PoisonError::into_inner);
    targets
        .iter()
        .find(|(name, _)| *name == (device.name(), device.id()))
        .map(|(_, target)| *target)
}
