//! What surrounds the operations of a run: binding memory, checking arguments, describing failures.

use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};

use super::{Executable, NOT_FAILED, State};
use crate::block::Block;
use crate::engine::{Engine, Run};
use crate::error::{Error, Result};
use crate::graph::{Bound, Graph, Stopped};
use crate::ops::View;

impl Executable {
    /// Calls `f` with the graph bound to these arguments, and the blocks of its results; tensors
    /// show these afterwards.
    pub(in crate::engine) fn with_bound<T>(
        &self,
        arguments: &[View],
        f: impl FnOnce(&Bound, &[Arc<Block>]) -> Result<T, Stopped>,
    ) -> Result<T> {
        let mut state = self.state();
        self.reached.store(NOT_FAILED, Relaxed);
        self.bind(&mut state, arguments)?;
        let slots = self.bind_slots(&mut state.bound)?;
        self.check(&mut state, arguments)?;
        self.refresh(&mut state)?;
        self.raise_versions(arguments);
        let done = f(&state.bound, &slots);
        self.reached.store(done.as_ref().err().map_or(NOT_FAILED, |stopped| stopped.end), Relaxed);
        drop(state);
        let done = done.map_err(|stopped| self.describe(&self.graph, stopped))?;
        self.show(slots);
        Ok(done)
    }

    /// Calls `f` with the graph bound to these arguments and to results that nothing else shows;
    /// tensors still show the previous run.
    pub(in crate::engine) fn aside<T>(
        &self,
        arguments: &[View],
        f: impl FnOnce(&Bound, &[Arc<Block>]) -> Result<T>,
    ) -> Result<T> {
        let mut state = self.state();
        self.bind(&mut state, arguments)?;
        let slots = self.bind_fresh_slots(&mut state.bound)?;
        self.check(&mut state, arguments)?;
        self.refresh(&mut state)?;
        f(&state.bound, &slots)
    }

    /// Redirects the tensors that follow the graph's results to these blocks.
    fn show(&self, blocks: Vec<Arc<Block>>) {
        let pairs = self.slots.iter().zip(blocks);
        let moved = pairs.map(|(slot, block)| u64::from(slot.latest.set(block))).sum();
        self.moves.fetch_add(moved, Relaxed);
        self.runs.fetch_add(1, Relaxed);
    }

    /// Runs nodes in recorded order, releasing the turn around user code.
    pub(in crate::engine) fn replay<'a>(
        &self,
        engine: &'a Engine,
        run: &mut Run<'a>,
        bound: &Bound,
        nodes: Range<usize>,
    ) -> Result<(), Stopped> {
        let mut first = nodes.start;
        for &host in self.special.hosts.iter().filter(|host| nodes.contains(host)) {
            (self.replay)(bound, first..host)?;
            run.step_aside(engine, || (self.replay)(bound, host..host + 1))?;
            first = host + 1;
        }
        (self.replay)(bound, first..nodes.end)
    }

    /// The error, with the operation's name, layer and line.
    pub(in crate::engine) fn describe(&self, graph: &Graph, stopped: Stopped) -> Error {
        let op = &graph.ops()[stopped.node];
        let origin = &self.origins[op.origin as usize];
        let mut error = stopped.error;
        if let Error::NotFinite { report, .. } = &mut error {
            report.line = Some(origin.line.clone());
        }
        let layer = origin.path().map(|path| format!("{path}: ")).unwrap_or_default();
        error.in_op(format!("{layer}{} (recorded at {})", op.call.name(), origin.line))
    }

    /// Rejects arguments whose values an operation would reject, before anything is written. What
    /// has not changed since it passed is not looked at again: a device would be waited for.
    fn check(&self, state: &mut State, arguments: &[View]) -> Result<()> {
        let given = || self.special.judged.iter().map(|&which| &arguments[which]);
        let is_known = state.passed.len() == self.special.judged.len();
        if is_known && state.passed.iter().zip(given()).all(|(passed, view)| passed.is(view)) {
            return Ok(());
        }
        state.passed.clear();
        let check = |&node: &usize| check(&state.bound, node);
        let checked = self.special.checked.iter().try_for_each(check);
        checked.map_err(|stopped| self.describe(&self.graph, stopped))?;
        state.passed.extend(given().map(Passed::new));
        Ok(())
    }

    fn raise_versions(&self, arguments: &[View]) {
        let written = |number: u32| self.graph.is_written(number);
        let captured = self.captured.iter().filter(|(number, _)| written(*number));
        captured.for_each(|(_, block)| block.touch());
        let given = self.arguments.iter().zip(arguments);
        given.filter(|(place, _)| written(place.block)).for_each(|(_, v)| v.block.touch());
    }
}

/// An argument whose values have been checked.
pub(super) struct Passed {
    block: Weak<Block>,
    version: u64,
    offset: usize,
}

impl Passed {
    fn new(view: &View) -> Passed {
        let View { block, offset, .. } = view;
        Passed { block: Arc::downgrade(block), version: block.version(), offset: *offset }
    }

    /// Whether an argument has the same values: never if another library may write them.
    fn is(&self, view: &View) -> bool {
        let View { block, offset, .. } = view;
        std::ptr::eq(self.block.as_ptr(), Arc::as_ptr(block))
            && self.version == block.version()
            && self.offset == *offset
            && !block.is_exposed()
    }
}

/// Runs nodes of a graph, all of whose blocks an [`Executable`] has bound.
#[allow(unsafe_code)]
pub(in crate::engine) fn replay(bound: &Bound, nodes: Range<usize>) -> Result<(), Stopped> {
    // SAFETY: the executable bound captured blocks, arguments with the recorded metas and results
    // to memory that it holds; it holds the run's guard, and the arena is backed.
    unsafe { bound.run_from(nodes.start, nodes.end) }
}

/// The same, up to the first node that produces a NaN or an infinity.
#[allow(unsafe_code)]
pub(in crate::engine) fn replay_checked(bound: &Bound, nodes: Range<usize>) -> Result<(), Stopped> {
    // SAFETY: as for `replay`.
    unsafe { bound.run_checked(nodes) }
}

/// Checks the values of a node's arguments before a run.
#[allow(unsafe_code)]
fn check(bound: &Bound, node: usize) -> Result<(), Stopped> {
    // SAFETY: as for `replay`; the values to check existed before the run.
    unsafe { bound.check(node) }
}
