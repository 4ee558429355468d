//! The memory that all graphs of a device share, and the right to run one.

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

/// Whether this thread runs a graph: it is in user code that the graph has called.
pub fn runs_graph() -> bool {
    RUNS.get()
}

/// The right to run a graph on a device: one holder at a time, who has the device's turn too.
pub struct Run<'a> {
    turn: Option<Turn<'a>>,
    held: Held<'a>,
}

impl<'a> Run<'a> {
    fn new(held: Held<'a>, turn: Turn<'a>) -> Self {
        RUNS.set(true);
        Run { turn: Some(turn), held }
    }

    /// Runs user code, without the turn, so that it may itself submit operations.
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
    /// The arena; its addresses are set aside when it is first asked for.
    pub(super) fn arena(&self) -> Result<Arc<Range>> {
        if let Some(arena) = self.arena.get() {
            return Ok(arena.clone());
        }
        let made = Arc::new(Range::new(self.device())?);
        Ok(self.arena.get_or_init(|| made).clone())
    }

    /// Waits for the right to run a graph. Never call this while holding Python's lock.
    ///
    /// # Errors
    /// [`Error::Graph`] where user code that a running graph called asks for it, and where such
    /// code of another thread has kept this one waiting for long.
    pub fn run(&self) -> Result<Run<'_>> {
        let message = "a graph cannot be run by user code that another graph runs; call its model \
                       with use_graph=False";
        crate::ensure!(!RUNS.get(), Error::Graph { op: "run".into(), message: message.into() });
        let held = self.runs.wait()?;
        Ok(Run::new(held, self.turn()))
    }

    /// The right to run a graph, if it is there at once.
    pub fn try_run(&self) -> Option<Run<'_>> {
        let held = self.runs.try_hold()?;
        Some(Run::new(held, self.try_turn()?))
    }

    /// Gives prepared kernels and all memory that nobody uses at the moment back: what is cached,
    /// and the arena unless a graph runs, maybe in user code that calls this. The next run of a
    /// graph backs it anew. Says how many bytes of memory that were. Never call this while holding
    /// Python's lock.
    pub fn trim(&self) -> usize {
        let idle = self.runs.try_hold();
        let mut turn = self.turn();
        turn.0.clear();
        let arena = self.arena.get().filter(|_| idle.is_some());
        let given = arena.map_or(0, |arena| arena.trim(self.device()));
        let given = given + self.device().pool().trim();
        heap::release();
        given
    }

    /// Where `SINGA_RS_CHECK` is 1, fills the arena with what is not a number in any float type,
    /// so that no run can live on what an earlier one left.
    pub(super) fn poison(&self, arena: &Range, bytes: usize) {
        if self.poisons {
            arena.poison(bytes);
        }
    }
}
