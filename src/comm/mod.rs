//! Communicators: the processes of a group exchange tensors.
//!
//! A [`Transport`] moves bytes. On top of it, [`Group`] runs exchanges in the order in which they
//! were started, on a thread of its own, so that they overlap with computation and never need
//! Python's lock. Reductions add in the order of the ranks: results are equal to the bit on all
//! ranks and in all runs.

mod buffers;
mod counted;
mod exchange;
mod fault;
mod group;
#[cfg(target_os = "linux")]
mod host;
mod measure;
#[cfg(target_os = "linux")]
pub mod mpi;
mod number;
#[cfg(target_os = "linux")]
mod process;
mod reduce;
mod signature;
mod sparse;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use crate::error::{Error, Result, locked};
pub use exchange::{Exchange, Fold, Wire};
pub use fault::{Fault, Liveness, Round, Transport};
pub use group::{Group, Request};
pub use measure::Cost;
pub use signature::Signature;

/// The open groups, by number.
static GROUPS: Mutex<Vec<(u64, Weak<Group>)>> = Mutex::new(Vec::new());

/// Opens a group over a transport; it closes when the last reference to it is dropped.
///
/// # Errors
/// [`Error::Device`] if its thread cannot be started.
pub fn open(transport: Box<dyn Transport>) -> Result<Arc<Group>> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let group = Group::start(NEXT.fetch_add(1, Relaxed), transport)?;
    let mut groups = locked(&GROUPS);
    groups.retain(|(_, group)| group.strong_count() > 0);
    groups.push((group.number(), Arc::downgrade(&group)));
    Ok(group)
}

/// Joins processes of this machine through the shared memory at `path`.
///
/// # Errors
/// [`Error::Exchange`] with what the transport says; as [`open`].
pub fn join(path: &Path, rank: usize, size: usize, timeout: Duration) -> Result<Arc<Group>> {
    open(on_this_machine(path, rank, size, timeout).map_err(refused)?)
}

/// The error if a transport cannot be opened.
pub fn refused(fault: Fault) -> Error {
    Error::Exchange { op: "join".into(), message: fault.to_string() }
}

#[cfg(target_os = "linux")]
fn on_this_machine(
    path: &Path,
    rank: usize,
    size: usize,
    timeout: Duration,
) -> Result<Box<dyn Transport>, Fault> {
    Ok(Box::new(host::Host::open(path, rank, size, timeout)?))
}

#[cfg(not(target_os = "linux"))]
fn on_this_machine(_: &Path, _: usize, _: usize, _: Duration) -> Result<Box<dyn Transport>, Fault> {
    Err(Fault::System("processes that share memory need Linux".into()))
}

/// The open group of this number.
///
/// # Errors
/// [`Error::Exchange`] if it is closed.
pub fn group(number: u64) -> Result<Arc<Group>> {
    let groups = locked(&GROUPS);
    let found = groups.iter().find(|(known, _)| *known == number);
    found.and_then(|(_, group)| group.upgrade()).ok_or_else(|| Error::Exchange {
        op: "exchange".into(),
        message: "the communicator is closed".into(),
    })
}

#[cfg(test)]
pub mod testing;
#[cfg(test)]
mod tests;
