//! A graph that can be run: its arguments, parameters and results bound to memory.

mod replay;

use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::bind::Slot;
use super::constants::{Constants, Memo};
use super::improve::Made;
use super::recording::Recording;
use super::run;
use super::{Engine, Options, Run};
use crate::block::Block;
use crate::device::range::Range as Reserved;
use crate::device::{Device, heap};
use crate::error::{Error, Result};
use crate::graph::{Bound, Graph, Place, Role, Stopped};
use crate::ops::View;

/// See the module's documentation.
pub struct Executable {
    pub(super) device: Arc<Device>,
    pub(super) graph: Graph,
    /// What runs find computed.
    pub(super) constants: Option<Constants>,
    lines: Vec<Arc<str>>,
    pub(super) arguments: Vec<Place>,
    pub(super) results: Vec<Place>,
    pub(super) captured: Vec<(u32, Arc<Block>)>,
    pub(super) slots: Vec<Slot>,
    /// What the arena keeps to, in bytes.
    pub(super) budget: Option<usize>,
    /// Why the graph is as recorded though another one was asked for: a bug.
    fault: Option<Error>,
    /// Runs nodes, and looks at what they make where that is asked for.
    replay: Replay,
    /// The operations that run user code, in order.
    hosts: Vec<usize>,
    /// The operations that the values of arguments can make fail.
    checked: Vec<usize>,
    /// Whether to wait for another thread would take longer than to run it.
    is_short: bool,
    pub(super) arena: Arc<Reserved>,
    moves: AtomicU64,
    runs: AtomicU64,
    /// How many operations may have run before the last run failed, until that is asked. Beside the
    /// state, so that user code that a run calls may ask.
    reached: AtomicUsize,
    state: Mutex<State>,
}

/// Runs nodes of a bound graph in recorded order.
type Replay = fn(&Bound, Range<usize>) -> Result<(), Stopped>;

pub(super) struct State {
    pub bound: Bound,
    pub memo: Option<Memo>,
    /// Whether the graph is a user of the arena, and captured blocks are bound.
    pub is_ready: bool,
}

/// What [`Executable::reached`] says where nothing has failed that is still to be told.
const NOT_FAILED: usize = usize::MAX;

impl Executable {
    /// Rewrites, analyses, plans and binds a sealed recording.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] where there are no addresses for an arena; what
    /// [`Graph::new`] says.
    pub fn new(engine: &Engine, recording: &Recording, options: &Options) -> Result<Self> {
        heap::expect(recording.queue.nodes().len().saturating_mul(BYTES_A_NODE))?;
        let Made { graph, constants, budget, fault } = recording.graph(engine, options)?;
        let arena = engine.arena()?;
        let bound = Bound::new(&graph, arena.start().as_ptr());
        let memo = constants.as_ref().map(|constants| constants.memo(arena.start().as_ptr()));
        let captured = recording.captured();
        captured.iter().for_each(|(_, block)| block.set_captured(true));
        let nodes = graph.nodes();
        let is_host = |&n: &usize| nodes[n].op.effects.host;
        let hosts = (0..nodes.len()).filter(is_host).collect::<Vec<_>>();
        let checked = (0..nodes.len()).filter(|&n| is_checked(&graph, n)).collect();
        heap::release();
        Ok(Executable {
            replay: if options.check_finite { run::replay_checked } else { run::replay },
            is_short: hosts.is_empty()
                && nodes.len() <= MOST_SHORT
                && nodes.iter().all(|node| node.op.is_short),
            device: recording.device().clone(),
            lines: recording.lines().to_vec(),
            arguments: recording.arguments.clone(),
            results: recording.results.clone(),
            slots: recording.slots(),
            captured,
            hosts,
            checked,
            arena,
            moves: AtomicU64::new(0),
            runs: AtomicU64::new(0),
            reached: AtomicUsize::new(NOT_FAILED),
            state: Mutex::new(State { bound, memo, is_ready: false }),
            graph,
            constants,
            budget,
            fault,
        })
    }

    /// What is wrong with the graph that was asked for, where this one is as recorded for that: a
    /// bug.
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

    /// The lines of the user's program, by the numbers that nodes have as their origins.
    pub fn lines(&self) -> &[Arc<str>] {
        &self.lines
    }

    /// Whether to wait for another thread would take longer than to run it.
    pub fn is_short(&self) -> bool {
        self.is_short
    }

    /// Runs the graph once on these arguments, which [`Executable::fits`]; answers the results.
    /// Whoever calls this does not hold Python's lock, unless it [`Executable::is_short`].
    ///
    /// # Errors
    /// Before anything is written: [`Error::OutOfMemory`], an argument's value out of range. In
    /// the middle: what a kernel says; [`Executable::written`] then tells what has changed.
    pub fn run<'a>(
        &self,
        engine: &'a Engine,
        run: Run<'a>,
        arguments: &[View],
    ) -> Result<Vec<View>> {
        self.run_and(engine, run, arguments, |_| ()).map(|(results, ())| results)
    }

    /// The same; `look` is shown what the run has left.
    pub(super) fn run_and<'a, T>(
        &self,
        engine: &'a Engine,
        mut run: Run<'a>,
        arguments: &[View],
        look: impl FnOnce(&Bound) -> T,
    ) -> Result<(Vec<View>, T)> {
        let seen = self.with_bound(arguments, |bound| {
            engine.poison(&self.arena, self.arena_bytes());
            self.replay(engine, &mut run, bound, self.nodes())?;
            Ok(look(bound))
        })?;
        // Before another run may take the memory that nobody holds yet.
        let results = self.results.iter().map(|place| self.result(place, arguments)).collect();
        drop(run);
        Ok((results, seen))
    }

    /// Whether some of the operations run user code.
    pub(super) fn has_hosts(&self) -> bool {
        !self.hosts.is_empty()
    }

    /// How often it has run to its end; all runs of one measurement count as one.
    pub fn runs(&self) -> u64 {
        self.runs.load(Relaxed)
    }

    /// How many of the changes that [`crate::block::changes`] counts were made by the graph's runs:
    /// tensors that show its results were pointed to other memory.
    pub fn moves(&self) -> u64 {
        self.moves.load(Relaxed)
    }

    /// All nodes.
    pub(super) fn nodes(&self) -> Range<usize> {
        0..self.graph.nodes().len()
    }

    /// Of the blocks that were there before the run, those that the run which just failed has
    /// written, as far as they can be told apart: by [`Arc::as_ptr`]. Each failure is told once.
    pub fn written(&self) -> Vec<usize> {
        let reached = self.reached.swap(NOT_FAILED, Relaxed);
        let Some(nodes) = self.graph.nodes().get(..reached) else { return Vec::new() };
        let places = nodes.iter().flat_map(|node| self.graph.outputs(node));
        let numbers: Vec<u32> = places.map(|place| place.block).collect();
        let written = self.captured.iter().filter(|(number, _)| numbers.contains(number));
        written.map(|(_, block)| Arc::as_ptr(block).addr()).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What it takes at most to make a graph, an operation. It is asked for beforehand, since what is
/// made bit by bit cannot be refused in the middle.
const BYTES_A_NODE: usize = 4 << 10;

/// Graphs of more operations are never called short.
const MOST_SHORT: usize = 64;

/// Whether the values of arguments, as they are before the run, can make a node fail.
fn is_checked(graph: &Graph, n: usize) -> bool {
    let node = &graph.nodes()[n];
    let is_given = |&i: &usize| {
        let block = graph.inputs(node)[i].block;
        graph.roles()[block as usize] == Role::Argument && !graph.is_written(block)
    };
    let inputs = node.op.kind.family().checked();
    !inputs.is_empty() && inputs.iter().all(is_given)
}

impl Drop for Executable {
    fn drop(&mut self) {
        self.captured.iter().for_each(|(_, block)| block.set_captured(false));
        if self.state().is_ready {
            self.arena.leave(&self.device, self.arena_bytes());
        }
    }
}
