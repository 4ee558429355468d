//! A graph that can be run, with its arguments, parameters and results bound to memory.

mod agreement;
mod arguments;
mod bind;
mod compare;
mod constants;
mod replay;
mod timing;
mod undo;

use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};

use rustc_hash::FxHashSet;

use super::improve::Made;
use super::recording::Recording;
use super::{Engine, Options, Run};
use crate::block::Block;
use crate::device::range::Range as Reserved;
use crate::device::{Device, heap};
use crate::error::{Error, Result, locked};
use crate::graph::{Bound, Graph, Origin, Place, Stopped};
use crate::ops::View;
use agreement::Agreement;
use bind::{Captured, Slot};
pub use compare::Compared;
pub(super) use constants::Constants;
pub use constants::Kept;
use constants::Memo;
use replay::Passed;
pub use timing::Timing;

/// See the module's documentation.
pub struct Executable {
    pub(super) device: Arc<Device>,
    pub(super) graph: Graph,
    /// Results that are cached from run to run.
    pub(super) constants: Option<Constants>,
    origins: Vec<Origin>,
    pub(super) arguments: Vec<Place>,
    pub(super) results: Vec<Place>,
    pub(super) captured: Captured,
    pub(super) slots: Vec<Slot>,
    /// The memory budget of the arena, in bytes.
    pub(super) budget: Option<usize>,
    /// Why the graph is as recorded although an optimised one was requested: a bug.
    fault: Option<Error>,
    /// Runs nodes, and checks their outputs if that was requested.
    replay: Replay,
    agreement: Agreement,
    special: Special,
    pub(super) arena: Arc<Reserved>,
    moves: AtomicU64,
    runs: AtomicU64,
    /// How many nodes may have run before the last run failed, until that is queried. Outside
    /// `state`, so that user code called by a run may query it.
    reached: AtomicUsize,
    state: Mutex<State>,
}

/// Runs nodes of a bound graph in recorded order.
type Replay = fn(&Bound, Range<usize>) -> Result<(), Stopped>;

pub(super) struct State {
    pub bound: Bound,
    pub memo: Option<Memo>,
    /// The arguments that were checked last.
    passed: Vec<Passed>,
    /// Whether the graph is registered with the arena, and captured blocks are bound.
    pub is_ready: bool,
}

/// The value of [`Executable::reached`] if there is no failure to report.
const NOT_FAILED: usize = usize::MAX;

impl Executable {
    /// Rewrites, analyses, plans and binds a sealed recording.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if memory or addresses for an arena are lacking; [`Error::Budget`];
    /// any error of [`Graph::new`].
    pub fn new(engine: &Engine, recording: &Recording, options: &Options) -> Result<Self> {
        heap::expect(recording.queue.ops().len().saturating_mul(BYTES_A_NODE))?;
        let made = recording.graph(engine, options)?;
        let arena = engine.arena()?;
        let made = Executable::of(made, arena, recording, options);
        heap::release();
        Ok(made)
    }

    fn of(made: Made, arena: Arc<Reserved>, recording: &Recording, options: &Options) -> Self {
        let Made { graph, constants, budget, fault } = made;
        Executable {
            device: recording.device().clone(),
            origins: recording.origins().to_vec(),
            arguments: recording.arguments.clone(),
            results: recording.results.clone(),
            replay: if options.check_finite { replay::replay_checked } else { replay::replay },
            agreement: Agreement::of(recording),
            special: Special::of(&graph, &recording.arguments),
            state: Mutex::new(State::new(&graph, constants.as_ref(), &arena)),
            captured: Captured::of(recording),
            slots: Slot::all(recording),
            arena,
            moves: AtomicU64::new(0),
            runs: AtomicU64::new(0),
            reached: AtomicUsize::new(NOT_FAILED),
            graph,
            constants,
            budget,
            fault,
        }
    }

    /// The bug in the optimised graph, if this one fell back to the operations as recorded.
    pub fn fault(&self) -> Option<&Error> {
        self.fault.as_ref()
    }

    /// The device that it runs on.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Where the operations come from, by the numbers that they have.
    pub fn origins(&self) -> &[Origin] {
        &self.origins
    }

    /// Whether a run is so short that releasing and retaking the GIL would take longer.
    pub fn is_short(&self) -> bool {
        self.special.is_short
    }

    /// Runs the graph once on these arguments, for which [`Executable::fits`] holds; returns the
    /// results. The caller must not hold the GIL, unless the graph [`Executable::is_short`].
    ///
    /// # Errors
    /// Before anything is written: [`Error::OutOfMemory`], or an argument's value out of range.
    /// Midway: any error of a kernel; [`Executable::written`] then tells what has changed.
    pub fn run<'a>(
        &self,
        engine: &'a Engine,
        run: Run<'a>,
        arguments: &[View],
    ) -> Result<Vec<View>> {
        self.run_and(engine, run, arguments, |_| ()).map(|(results, ())| results)
    }

    /// The same; `look` inspects the blocks that the run leaves in the slots.
    pub(super) fn run_and<'a, T>(
        &self,
        engine: &'a Engine,
        mut run: Run<'a>,
        arguments: &[View],
        look: impl FnOnce(&[Arc<Block>]) -> T,
    ) -> Result<(Vec<View>, T)> {
        self.agreement.begin()?;
        let seen = self.with_bound(arguments, |bound, made| {
            engine.poison(&self.arena, self.arena_bytes());
            self.replay(engine, &mut run, bound, self.nodes())?;
            Ok(look(made))
        })?;
        // Hold the results before another run may reuse their memory.
        let results = self.results.iter().map(|place| self.result(place, arguments)).collect();
        drop(run);
        Ok((results, seen))
    }

    /// Whether any node runs user code or exchanges with other processes.
    pub(super) fn has_hosts(&self) -> bool {
        !self.special.hosts.is_empty()
    }

    /// How many runs have completed; all runs of one measurement count as one.
    pub fn runs(&self) -> u64 {
        self.runs.load(Relaxed)
    }

    /// How many of the changes counted by [`crate::block::changes`] are due to the graph's runs,
    /// which redirected tensors that follow its results.
    pub fn moves(&self) -> u64 {
        self.moves.load(Relaxed)
    }

    /// All nodes.
    pub(super) fn nodes(&self) -> Range<usize> {
        0..self.graph.ops().len()
    }

    /// The captured blocks that the last, failed run may have written, identified by
    /// [`Arc::as_ptr`]. Each failure is reported once.
    pub fn written(&self) -> Vec<usize> {
        let reached = self.reached.swap(NOT_FAILED, Relaxed);
        let Some(ops) = self.graph.ops().get(..reached) else { return Vec::new() };
        let places = ops.iter().flat_map(|op| &op.outputs);
        let numbers: FxHashSet<u32> = places.map(|place| place.block).collect();
        let written = self.captured.iter().filter(|(number, _)| numbers.contains(number));
        written.map(|(_, block)| Arc::as_ptr(block).addr()).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }
}

/// The most memory that building a graph takes per node. It is checked beforehand, because many
/// small allocations cannot be refused halfway.
const BYTES_A_NODE: usize = 4 << 10;

/// Graphs with more nodes never count as short.
const MOST_SHORT: usize = 64;

impl State {
    fn new(graph: &Graph, constants: Option<&Constants>, arena: &Reserved) -> State {
        let start = arena.start().as_ptr();
        let memo = constants.map(|constants| constants.memo(start));
        State { bound: Bound::new(graph, start), memo, passed: Vec::new(), is_ready: false }
    }
}

/// Nodes that a run treats differently.
struct Special {
    /// Those that run user code, in order.
    hosts: Vec<usize>,
    /// Those that can fail because of the values of arguments.
    checked: Vec<usize>,
    /// The arguments that these check.
    judged: Vec<usize>,
    /// Whether a run is so short that releasing and retaking the GIL would take longer.
    is_short: bool,
}

impl Special {
    fn of(graph: &Graph, arguments: &[Place]) -> Special {
        let nodes = graph.kernels();
        let hosts: Vec<usize> = (0..nodes.len()).filter(|&n| nodes[n].effects.host).collect();
        let is_checked = |&n: &usize| graph.is_checked_before(n);
        let checked: Vec<usize> = (0..nodes.len()).filter(is_checked).collect();
        let judged = judged(graph, &checked, arguments);
        let is_small = hosts.is_empty() && nodes.len() <= MOST_SHORT;
        let is_short = is_small && nodes.iter().all(|node| node.is_short);
        Special { hosts, checked, judged, is_short }
    }
}

/// The arguments whose values these nodes check.
fn judged(graph: &Graph, checked: &[usize], arguments: &[Place]) -> Vec<usize> {
    let blocks = checked.iter().flat_map(|&n| {
        let op = &graph.ops()[n];
        op.call.kind.family().checked().iter().map(|&i| op.inputs[i].block)
    });
    let blocks: Vec<u32> = blocks.collect();
    (0..arguments.len()).filter(|&a| blocks.contains(&arguments[a].block)).collect()
}

impl Drop for Executable {
    fn drop(&mut self) {
        if self.state().is_ready {
            self.arena.leave(self.arena_bytes());
        }
    }
}
