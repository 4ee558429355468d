//! The lock under which graphs run: one thread at a time, which may be in user code meanwhile.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::error::{Error, Result, locked};

/// How long a thread waits for one that is in user code. Such code may itself wait for the waiting
/// thread, which would be a deadlock.
const PATIENCE: Duration = Duration::from_secs(3);
/// How often a waiting thread checks whether it should give up.
const LOOK: Duration = Duration::from_millis(100);

/// See the module's documentation.
#[derive(Default)]
pub(super) struct Runs {
    holder: Mutex<Holder>,
    freed: Condvar,
}

#[derive(Default)]
struct Holder {
    is_there: bool,
    in_user_code: Option<Instant>,
    /// The number of waiting threads, to skip the wake-up, which costs the same if nobody waits.
    waiting: usize,
}

impl Holder {
    fn take<'a>(&mut self, runs: &'a Runs) -> Held<'a> {
        self.is_there = true;
        Held(runs)
    }
}

/// The guard of the lock.
pub(super) struct Held<'a>(&'a Runs);

impl Runs {
    /// Waits for the lock.
    ///
    /// # Errors
    /// [`Error::Graph`] if the holder stays in user code for too long.
    pub fn wait(&self) -> Result<Held<'_>> {
        let began = Instant::now();
        let mut holder = self.holder();
        while holder.is_there {
            let since = holder.in_user_code.map(|entered| entered.max(began));
            crate::ensure!(since.is_none_or(|since| since.elapsed() < PATIENCE), stuck());
            holder.waiting += 1;
            let waited = self.freed.wait_timeout(holder, LOOK);
            holder = waited.unwrap_or_else(PoisonError::into_inner).0;
            holder.waiting -= 1;
        }
        Ok(holder.take(self))
    }

    /// The lock, if nobody holds it.
    pub fn try_hold(&self) -> Option<Held<'_>> {
        let mut holder = self.holder();
        (!holder.is_there).then(|| holder.take(self))
    }

    fn holder(&self) -> MutexGuard<'_, Holder> {
        locked(&self.holder)
    }
}

impl Held<'_> {
    /// Records that user code begins, or that it has ended.
    pub fn set_in_user_code(&self, is_there: bool) {
        self.0.holder().in_user_code = is_there.then(Instant::now);
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut holder = self.0.holder();
        (holder.is_there, holder.in_user_code) = (false, None);
        let waiting = holder.waiting;
        drop(holder);
        if waiting > 0 {
            self.0.freed.notify_one();
        }
    }
}

fn stuck() -> Error {
    let message = format!(
        "another thread is running a graph, and user code that it called has not returned for {} \
         seconds; if that code waits for this thread, call the model with use_graph=False here",
        PATIENCE.as_secs()
    );
    Error::graph("run", message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Engine;
    use crate::kernels;

    #[test]
    fn one_holder_at_a_time() {
        let runs = Runs::default();
        let first = runs.wait().unwrap();
        assert!(runs.try_hold().is_none());
        std::thread::scope(|scope| {
            let second = scope.spawn(|| runs.wait().map(drop));
            drop(first);
            second.join().unwrap().unwrap();
        });
        assert!(runs.try_hold().is_some());
    }

    /// Patience counts from when the wait began: user code may have begun long before.
    #[test]
    fn user_code_that_began_long_ago_is_waited_for() {
        let runs = Runs::default();
        let held = runs.wait().unwrap();
        runs.holder().in_user_code = Instant::now().checked_sub(2 * PATIENCE);
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| runs.wait().map(drop));
            while runs.holder().waiting == 0 && !waiter.is_finished() {
                std::thread::yield_now();
            }
            drop(held);
            waiter.join().unwrap().expect("it has only begun to wait");
        });
        assert_eq!(runs.holder().waiting, 0);
    }

    #[test]
    fn a_run_gives_the_turn_away_while_it_is_in_user_code() {
        let engine = Engine::new(kernels::host().clone());
        let mut run = engine.run().unwrap();
        let is_free = || engine.try_turn().is_some();
        let seen = || {
            let is_free = std::thread::scope(|scope| scope.spawn(is_free).join().unwrap());
            (engine.runs.holder().in_user_code.is_some(), is_free)
        };
        assert_eq!(seen(), (false, false));
        assert_eq!(run.step_aside(&engine, seen), (true, true));
        assert_eq!(seen(), (false, false));
    }

    #[test]
    fn nobody_waits_for_user_code_for_ever() {
        let runs = Runs::default();
        let held = runs.wait().unwrap();
        held.set_in_user_code(true);
        assert!(matches!(runs.wait(), Err(Error::Graph { .. })));
        held.set_in_user_code(false);
        std::thread::scope(|scope| {
            let patient = scope.spawn(|| runs.wait().map(drop));
            std::thread::sleep(PATIENCE + LOOK);
            drop(held);
            patient.join().unwrap().expect("kernels take as long as they take");
        });
    }
}
