//! The arena that all graphs of a device share, and the guard that a graph runs under.

use std::cell::Cell;
use std::sync::Arc;

use super::runs::Held;
use super::{Engine, Turn};
use crate::device::heap;
use crate::device::range::Range;
use crate::error::{Error, Result};

thread_local! {
    static RUNS: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is running a graph, which means that the caller is user code that the graph
/// called.
pub fn runs_graph() -> bool {
    RUNS.get()
}

/// A guard for running a graph on a device: one holder at a time, which holds the device's turn
/// too.
pub struct Run<'a> {
    turn: Option<Turn<'a>>,
    held: Held<'a>,
}

impl<'a> Run<'a> {
    fn new(held: Held<'a>, turn: Turn<'a>) -> Self {
        RUNS.set(true);
        Run { turn: Some(turn), held }
    }

    /// Runs user code with the turn released, so that it may itself submit operations.
    pub(super) fn step_aside<T>(&mut self, engine: &'a Engine, user_code: impl FnOnce() -> T) -> T {
        drop(self.turn.take());
        self.held.set_in_user_code(true);
        let made = user_code();
        self.held.set_in_user_code(false);
        self.turn = Some(engine.turn());
        made
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        RUNS.set(false);
    }
}

impl Engine {
    /// The arena, whose addresses are reserved on first use.
    pub(super) fn arena(&self) -> Result<Arc<Range>> {
        if let Some(arena) = self.arena.get() {
            return Ok(arena.clone());
        }
        let made = Arc::new(Range::new(self.device())?);
        Ok(self.arena.get_or_init(|| made).clone())
    }

    /// Waits until no other graph runs. Never call this while holding the GIL.
    ///
    /// # Errors
    /// [`Error::Graph`] if called from user code of a graph on this thread, or if user code of
    /// another thread's graph has kept this one waiting for too long.
    pub fn run(&self) -> Result<Run<'_>> {
        let message = "a graph cannot be run by user code that another graph runs; call its model \
                       with use_graph=False";
        crate::ensure!(!RUNS.get(), Error::graph("run", message));
        let held = self.runs.wait()?;
        Ok(Run::new(held, self.turn()))
    }

    /// A guard for running a graph, if it is available at once.
    pub fn try_run(&self) -> Option<Run<'_>> {
        if RUNS.get() {
            return None; // another device's; `run` refuses
        }
        let held = self.runs.try_hold()?;
        Some(Run::new(held, self.try_turn()?))
    }

    /// Releases prepared kernels and all memory not in use: cached memory, and the arena unless a
    /// graph is running (perhaps in user code that calls this). The next run of a graph backs the
    /// arena again. Returns the bytes of memory released. Never call this while holding the GIL.
    pub fn trim(&self) -> usize {
        let idle = self.runs.try_hold();
        let mut turn = self.turn();
        turn.0.clear();
        let arena = self.arena.get().filter(|_| idle.is_some());
        let given = arena.map_or(0, |arena| arena.trim());
        let given = given + self.device().pool().trim();
        heap::release();
        given
    }

    /// If `SINGA_RS_CHECK` is 1, fills the arena with NaNs of every float type, so that no run can
    /// depend on what an earlier one left.
    pub(super) fn poison(&self, arena: &Range, bytes: usize) {
        if self.poisons {
            arena.poison(bytes);
        }
    }
}
