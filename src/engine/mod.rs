//! Runs operations: prepares each one's kernel, gives its blocks memory, keeps versions.

mod append;
mod arena;
mod bind;
mod checks;
mod compare;
mod constants;
mod eager;
mod executable;
mod fits;
mod improve;
mod initial;
mod kernels;
mod options;
pub mod record;
mod recording;
mod rng;
mod run;
mod runs;
mod seed;
mod stream;
#[cfg(test)]
mod tests;
mod timing;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

use smallvec::SmallVec;

use crate::device::range::Range;
use crate::device::{Device, cpu, process};
use crate::error::{Error, Result};
use crate::ops::Kind;
use crate::view::View;
pub use arena::{Run, runs_graph};
pub use compare::Compared;
pub use constants::Kept;
pub use executable::Executable;
use kernels::Kernels;
pub use options::{Budget, Limits, Options};
pub use recording::Recording;
pub use rng::{Rng, Stream};
pub use run::check_finite;
use runs::Runs;

/// The inputs of an operation.
pub type Inputs = SmallVec<[View; 4]>;

/// The outputs of an operation.
pub type Outputs = SmallVec<[View; 2]>;

/// What runs the operations of one device.
pub struct Engine {
    device: Arc<Device>,
    rng: Rng,
    turn: Mutex<Kernels>,
    /// The planned memory of all graphs, and the right to use it.
    arena: OnceLock<Arc<Range>>,
    runs: Runs,
    /// Whether the arena is filled with what is not a number before each run.
    poisons: bool,
}

/// The right to run on a device: one holder at a time. The prepared kernels come with it.
///
/// Whoever holds it never waits for Python's lock, and whoever waits for it does not hold that
/// lock. So nothing that may run a user's code happens during a turn, and that includes letting
/// go of memory of another library.
pub struct Turn<'a>(MutexGuard<'a, Kernels>);

/// The engine of the CPU.
pub fn cpu() -> &'static Engine {
    static CPU: OnceLock<Engine> = OnceLock::new();
    CPU.get_or_init(|| Engine::new(cpu::device().clone()))
}

/// The engine of a device. Whoever asks here first never waits for a lock in a forked child.
///
/// # Errors
/// [`Error::Device`] where the device has none, or in a child forked from a process that used it.
pub fn of(device: &Device) -> Result<&'static Engine> {
    process::check("engine")?;
    if device.id() == cpu::device().id() {
        return Ok(cpu());
    }
    Err(Error::Device { op: "engine".into(), message: format!("{device:?} cannot run operations") })
}

impl Engine {
    fn new(device: Arc<Device>) -> Self {
        let rng = Rng::new(&device);
        let turn = Mutex::new(Kernels::new(&device));
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

    /// Sets how many threads kernels may use, while none is prepared; whether that is new.
    ///
    /// # Errors
    /// As [`Device::set_threads`].
    pub fn set_threads(&self, threads: usize) -> Result<bool> {
        let _turn = self.turn();
        let before = self.device.threads();
        self.device.set_threads(threads)?;
        Ok(before != threads)
    }

    /// Waits for the right to run. Never call this while holding Python's lock.
    pub fn turn(&self) -> Turn<'_> {
        Turn(self.turn.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The right to run, if nobody else has it.
    pub fn try_turn(&self) -> Option<Turn<'_>> {
        match self.turn.try_lock() {
            Ok(guard) => Some(Turn(guard)),
            Err(TryLockError::Poisoned(poisoned)) => Some(Turn(poisoned.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

impl Turn<'_> {
    /// Whether an operation is prepared and so small that to wait for another thread would take
    /// longer than to run it.
    pub fn is_short(&mut self, kind: &Kind, inputs: &[View]) -> bool {
        self.0.find_short(kind, inputs).is_some()
    }
}
