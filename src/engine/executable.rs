//! A graph that can be run: its arguments, parameters and results bound to memory.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::bind::Slot;
use super::constants::{Constants, Memo};
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
    state: Mutex<State>,
}

/// Runs nodes of a bound graph in recorded order.
type Replay = fn(&Bound, Range<usize>) -> Result<(), Stopped>;

pub(super) struct State {
    pub bound: Bound,
    pub memo: Option<Memo>,
    /// Whether the graph is a user of the arena, and captured blocks are bound.
    pub is_ready: bool,
    /// How many operations may have run before the last run failed, if it did.
    reached: Option<usize>,
}

impl Executable {
    /// Rewrites, analyses, plans and binds a sealed recording.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] where there are no addresses for an arena; what
    /// [`Graph::new`] says.
    pub fn new(engine: &Engine, recording: &Recording, options: &Options) -> Result<Self> {
        let (graph, constants) = recording.graph(engine, options)?;
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
            state: Mutex::new(State { bound, memo, is_ready: false, reached: None }),
            graph,
            constants,
        })
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
        mut run: Run<'a>,
        arguments: &[View],
    ) -> Result<Vec<View>> {
        self.with_bound(arguments, |bound| {
            engine.poison(&self.arena, self.arena_bytes());
            self.replay(engine, &mut run, bound, self.nodes())
        })?;
        // Before another run may take the memory that nobody holds yet.
        let results = self.results.iter().map(|place| self.result(place, arguments)).collect();
        drop(run);
        Ok(results)
    }

    /// Does something with the graph bound to these arguments; results are shown afterwards.
    pub(super) fn with_bound<T>(
        &self,
        arguments: &[View],
        f: impl FnOnce(&Bound) -> Result<T, Stopped>,
    ) -> Result<T> {
        let mut state = self.state();
        state.reached = None;
        self.bind(&mut state, arguments)?;
        let slots = self.bind_slots(&mut state.bound)?;
        self.check(&state.bound)?;
        self.refresh(&mut state)?;
        self.raise_versions(arguments);
        let done = f(&state.bound);
        state.reached = done.as_ref().err().map(|stopped| stopped.end);
        drop(state);
        let done = done.map_err(|stopped| self.describe(&self.graph, stopped))?;
        self.show(slots);
        Ok(done)
    }

    /// Does something with the graph bound to these arguments, and leaves no trace: what it writes
    /// is put back, and tensors go on showing the run before.
    pub(super) fn aside<T>(
        &self,
        arguments: &[View],
        f: impl FnOnce(&Bound) -> Result<T, Stopped>,
    ) -> Result<T> {
        let mut state = self.state();
        self.bind(&mut state, arguments)?;
        let slots = self.bind_fresh_slots(&mut state.bound)?;
        self.check(&state.bound)?;
        self.refresh(&mut state)?;
        let updated = self.updated(arguments);
        let before = updated.iter().map(|block| run::save(block)).collect::<Result<Vec<_>>>()?;
        let done = f(&state.bound);
        updated.iter().zip(&before).for_each(|(block, bytes)| run::restore(block, bytes));
        drop(slots);
        done.map_err(|stopped| self.describe(&self.graph, stopped))
    }

    /// Tensors that show the latest run show these blocks from now on.
    fn show(&self, blocks: Vec<Arc<Block>>) {
        let pairs = self.slots.iter().zip(blocks);
        let moved = pairs.map(|(slot, block)| u64::from(slot.latest.set(block))).sum();
        self.moves.fetch_add(moved, Relaxed);
        self.runs.fetch_add(1, Relaxed);
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

    /// Refuses arguments whose values an operation would refuse, before anything is written.
    fn check(&self, bound: &Bound) -> Result<()> {
        let check = |&node: &usize| run::check(bound, node);
        self.checked
            .iter()
            .try_for_each(check)
            .map_err(|stopped| self.describe(&self.graph, stopped))
    }

    fn raise_versions(&self, arguments: &[View]) {
        let written = |number: u32| self.graph.is_written(number);
        let captured = self.captured.iter().filter(|(number, _)| written(*number));
        captured.for_each(|(_, block)| block.touch());
        let given = self.arguments.iter().zip(arguments);
        given.filter(|(place, _)| written(place.block)).for_each(|(_, v)| v.block.touch());
    }

    /// All nodes.
    pub(super) fn nodes(&self) -> Range<usize> {
        0..self.graph.nodes().len()
    }

    /// User code runs without the turn, so that it may itself submit operations.
    pub(super) fn replay<'a>(
        &self,
        engine: &'a Engine,
        run: &mut Run<'a>,
        bound: &Bound,
        nodes: Range<usize>,
    ) -> Result<(), Stopped> {
        let mut first = nodes.start;
        for &host in self.hosts.iter().filter(|host| nodes.contains(host)) {
            (self.replay)(bound, first..host)?;
            drop(run.turn.take());
            (self.replay)(bound, host..host + 1)?;
            run.turn = Some(engine.turn());
            first = host + 1;
        }
        (self.replay)(bound, first..nodes.end)
    }

    /// The error with the operation's name and line.
    pub(super) fn describe(&self, graph: &Graph, stopped: Stopped) -> Error {
        let node = &graph.nodes()[stopped.node];
        let line = &self.lines[node.origin as usize];
        let mut error = stopped.error;
        if let Error::NotFinite { report, .. } = &mut error {
            report.line = Some(line.clone());
        }
        error.in_op(format!("{} (recorded at {line})", node.op.name()))
    }

    /// Of the blocks that were there before the run, those that the run which just failed has
    /// written, as far as they can be told apart: by [`Arc::as_ptr`].
    pub fn written(&self) -> Vec<usize> {
        let Some(reached) = self.state().reached else { return Vec::new() };
        let nodes = &self.graph.nodes()[..reached];
        let places = nodes.iter().flat_map(|node| self.graph.outputs(node));
        let numbers: Vec<u32> = places.map(|place| place.block).collect();
        let written = self.captured.iter().filter(|(number, _)| numbers.contains(number));
        written.map(|(_, block)| Arc::as_ptr(block).addr()).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

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
