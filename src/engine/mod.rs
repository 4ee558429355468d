//! Runs operations: prepares kernels, allocates blocks, maintains versions.

mod arena;
mod cache;
mod checks;
mod eager;
mod executable;
mod improve;
mod options;
mod recording;
mod rng;
mod runs;
#[cfg(test)]
mod tests;
mod transfer;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, TryLockError};

use smallvec::SmallVec;

use crate::device::range::Range;
use crate::device::{Device, process};
use crate::error::{Error, Result, locked};
pub use crate::kernels::check_finite;
use crate::ops::Kind;
use crate::view::View;
pub use arena::{Run, runs_graph};
use cache::KernelCache;
pub use executable::{Compared, Executable, Kept, Timing};
pub use options::{Budget, Limits, Options};
pub use recording::append::end_recording;
pub use recording::{Recording, SavedPlace, recorder as record};
pub use rng::{Rng, Stream};
use runs::Runs;
pub use transfer::is_transfer;

/// The inputs of an operation.
pub type Inputs = SmallVec<[View; 4]>;

/// The outputs of an operation.
pub type Outputs = SmallVec<[View; 2]>;

/// Runs the operations of one device.
pub struct Engine {
    device: Arc<Device>,
    rng: Rng,
    turn: Mutex<KernelCache>,
    /// The arena: planned memory that all graphs share.
    arena: OnceLock<Arc<Range>>,
    runs: Runs,
    /// Whether the arena is filled with NaNs before each run.
    poisons: bool,
}

/// A guard that grants exclusive access to a device and to the cache of prepared kernels.
///
/// A thread that holds it must not wait for the GIL, and a thread that waits for it must not hold
/// the GIL. So nothing that may run user code happens during a turn, and that includes releasing
/// memory of another library.
pub struct Turn<'a>(MutexGuard<'a, KernelCache>);

/// The engine of the host's device.
pub fn host() -> &'static Engine {
    static HOST: OnceLock<Engine> = OnceLock::new();
    HOST.get_or_init(|| Engine::new(crate::kernels::host().clone()))
}

/// The engines of other devices.
static OTHERS: RwLock<Vec<&Engine>> = RwLock::new(Vec::new());

/// Gives a device that runs operations its engine, for good.
pub fn start(device: &Arc<Device>) {
    let mut others = OTHERS.write().unwrap_or_else(PoisonError::into_inner);
    if others.iter().all(|engine| engine.device.id() != device.id()) {
        others.push(Box::leak(Box::new(Engine::new(device.clone()))));
    }
}

/// The engine of a device. A caller that gets its engine here never waits for a lock in a forked
/// child.
///
/// # Errors
/// [`Error::Device`] if the device has none, or in a child forked from a process that used it; the
/// errors of [`process::check`].
pub fn of(device: &Device) -> Result<&'static Engine> {
    process::check("engine")?;
    if device.id() == host().device.id() {
        return Ok(host());
    }
    let others = OTHERS.read().unwrap_or_else(PoisonError::into_inner);
    let found = others.iter().find(|engine| engine.device.id() == device.id()).copied();
    let message = || format!("{device:?} cannot run operations");
    found.ok_or_else(|| Error::device("engine", message()))
}

impl Engine {
    fn new(device: Arc<Device>) -> Self {
        let rng = Rng::new(&device);
        let turn = Mutex::new(KernelCache::new(&device));
        let poisons = std::env::var_os("SINGA_RS_CHECK").is_some_and(|value| value == "1");
        Engine { device, rng, turn, arena: OnceLock::new(), runs: Runs::default(), poisons }
    }

    /// The device that it runs on.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// The device's random number generators.
    pub fn rng(&self) -> &Rng {
        &self.rng
    }

    /// Sets how many threads kernels may use, under the turn so that none is being prepared;
    /// returns whether the number changed.
    ///
    /// # Errors
    /// As [`Device::set_threads`].
    pub fn set_threads(&self, threads: usize) -> Result<bool> {
        let _turn = self.turn();
        let before = self.device.threads();
        self.device.set_threads(threads)?;
        Ok(before != threads)
    }

    /// Waits for the turn. Never call this while holding the GIL.
    pub fn turn(&self) -> Turn<'_> {
        Turn(locked(&self.turn))
    }

    /// The turn, if no other thread holds it.
    pub fn try_turn(&self) -> Option<Turn<'_>> {
        match self.turn.try_lock() {
            Ok(guard) => Some(Turn(guard)),
            Err(TryLockError::Poisoned(poisoned)) => Some(Turn(poisoned.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

impl Turn<'_> {
    /// Whether an operation is prepared and so short that releasing and retaking the GIL would take
    /// longer than running it.
    pub fn is_short(&mut self, kind: &Kind, inputs: &[View]) -> bool {
        self.0.find_short(kind, inputs).is_some()
    }
}
