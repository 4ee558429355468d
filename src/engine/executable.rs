//! A graph that can be run: its arguments, parameters and results bound to memory.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashSet;

use super::recording::{Recording, Source};
use super::run::{self, replay};
use super::{Engine, Run};
use crate::block::{Block, Latest};
use crate::device::range::Range;
use crate::device::{Account, Device};
use crate::error::{Error, Result};
use crate::graph::{Bound, Graph, Place, Role, Stopped};
use crate::ops::View;

/// A block that a run makes outside of the arena.
pub(super) struct Slot {
    pub block: u32,
    pub bytes: usize,
    pub latest: Arc<Latest>,
}

/// See the module's documentation.
pub struct Executable {
    device: Arc<Device>,
    graph: Graph,
    lines: Vec<Arc<str>>,
    pub(super) arguments: Vec<Place>,
    results: Vec<Place>,
    pub(super) captured: Vec<(u32, Arc<Block>)>,
    pub(super) slots: Vec<Slot>,
    /// The operations that run user code, in order.
    hosts: Vec<usize>,
    /// The operations that the values of arguments can make fail.
    checked: Vec<usize>,
    /// Whether to wait for another thread would take longer than to run it.
    is_short: bool,
    arena: Arc<Range>,
    state: Mutex<State>,
}

struct State {
    bound: Bound,
    /// Whether the arena is backed and captured blocks are bound.
    is_ready: bool,
    /// The operation that the last run stopped at.
    stopped: Option<usize>,
}

impl Executable {
    /// Analyses, plans and binds a sealed recording.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] where there are no addresses for an arena; what
    /// [`Graph::new`] says.
    pub fn new(engine: &Engine, recording: &Recording) -> Result<Self> {
        let graph = recording.graph()?;
        let arena = engine.arena()?;
        let bound = Bound::new(&graph, arena.start().as_ptr());
        let captured = recording.captured();
        captured.iter().for_each(|(_, block)| block.set_captured(true));
        let nodes = graph.nodes();
        let is_host = |&n: &usize| nodes[n].op.effects.host;
        let hosts = (0..nodes.len()).filter(is_host).collect::<Vec<_>>();
        let checked = (0..nodes.len()).filter(|&n| is_checked(&graph, n)).collect();
        Ok(Executable {
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
            state: Mutex::new(State { bound, is_ready: false, stopped: None }),
            graph,
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
        let mut state = self.state();
        self.bind(&mut state, arguments)?;
        let slots = self.bind_slots(&mut state.bound)?;
        self.check(&state.bound)?;
        self.raise_versions(arguments);
        engine.poison(&self.arena, self.graph.arena_bytes());
        let done = self.replay(engine, &mut run, &state.bound);
        state.stopped = done.as_ref().err().map(|stopped| stopped.node);
        drop(state);
        done.map_err(|stopped| self.describe(stopped))?;
        self.slots.iter().zip(slots).for_each(|(slot, block)| slot.latest.set(block));
        drop(run);
        Ok(self.results.iter().map(|place| self.result(place, arguments)).collect())
    }

    /// Binds what may have changed since the last run.
    fn bind(&self, state: &mut State, arguments: &[View]) -> Result<()> {
        if !state.is_ready {
            for (number, block) in &self.captured {
                state.bound.bind(*number, block.to_touch()?.as_ptr());
            }
            self.arena.enter(&self.device, self.graph.arena_bytes())?;
            state.is_ready = true;
        }
        for (place, view) in self.arguments.iter().zip(arguments) {
            let moved = (view.offset as isize - place.offset as isize)
                .wrapping_mul(place.meta.dtype.size() as isize);
            let start = view.block.to_touch()?.as_ptr();
            state.bound.bind(place.block, start.wrapping_offset(moved));
        }
        Ok(())
    }

    /// Memory for what the run makes outside of the arena: that of the last run where nobody can
    /// see it any more.
    fn bind_slots(&self, bound: &mut Bound) -> Result<Vec<Arc<Block>>> {
        let mut blocks = Vec::with_capacity(self.slots.len());
        for slot in &self.slots {
            let block =
                slot.latest.reusable().unwrap_or_else(|| Block::new(&self.device, slot.bytes));
            bound.bind(slot.block, block.to_overwrite()?.as_ptr());
            blocks.push(block);
        }
        Ok(blocks)
    }

    /// Refuses arguments whose values an operation would refuse, before anything is written.
    fn check(&self, bound: &Bound) -> Result<()> {
        let check = |&node: &usize| run::check(bound, node);
        self.checked.iter().try_for_each(check).map_err(|stopped| self.describe(stopped))
    }

    fn raise_versions(&self, arguments: &[View]) {
        let written = |number: u32| self.graph.is_written(number);
        let captured = self.captured.iter().filter(|(number, _)| written(*number));
        captured.for_each(|(_, block)| block.touch());
        let given = self.arguments.iter().zip(arguments);
        given.filter(|(place, _)| written(place.block)).for_each(|(_, v)| v.block.touch());
    }

    /// User code runs without the turn, so that it may itself submit operations.
    fn replay<'a>(
        &self,
        engine: &'a Engine,
        run: &mut Run<'a>,
        bound: &Bound,
    ) -> Result<(), Stopped> {
        let mut first = 0;
        for &host in &self.hosts {
            replay(bound, first..host)?;
            drop(run.turn.take());
            replay(bound, host..host + 1)?;
            run.turn = Some(engine.turn());
            first = host + 1;
        }
        replay(bound, first..self.graph.nodes().len())
    }

    fn result(&self, place: &Place, arguments: &[View]) -> View {
        let mut offset = place.offset;
        let block = match self.graph.roles()[place.block as usize] {
            Role::Argument => {
                let same = |recorded: &&Place| recorded.block == place.block;
                let which = self.arguments.iter().position(|p| same(&p)).expect("an argument");
                offset = offset + arguments[which].offset - self.arguments[which].offset;
                arguments[which].block.clone()
            }
            Role::Captured => self.captured_block(place.block),
            Role::Slot | Role::Temporary => {
                let slot = self.slots.iter().find(|slot| slot.block == place.block);
                slot.and_then(|slot| slot.latest.get()).expect("results lie in slots")
            }
        };
        View { block, meta: place.meta.clone(), offset }
    }

    fn captured_block(&self, number: u32) -> Arc<Block> {
        let found = self.captured.iter().find(|(n, _)| *n == number);
        found.expect("captured blocks are listed").1.clone()
    }

    /// The error with the operation's name and line.
    fn describe(&self, stopped: Stopped) -> Error {
        let node = &self.graph.nodes()[stopped.node];
        let line = &self.lines[node.origin as usize];
        stopped.error.in_op(format!("{} (recorded at {line})", node.op.name()))
    }

    /// Of the blocks that were there before the run, those that the run which just failed has
    /// written, as far as they can be told apart: by [`Arc::as_ptr`].
    pub fn written(&self) -> Vec<usize> {
        let Some(stopped) = self.state().stopped else { return Vec::new() };
        let nodes = &self.graph.nodes()[..=stopped];
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
            self.arena.leave(&self.device, self.graph.arena_bytes());
        }
    }
}

impl Recording {
    fn captured(&self) -> Vec<(u32, Arc<Block>)> {
        let blocks = self.queue.blocks().iter().zip(&self.sources).enumerate();
        let is_captured = |s: &Source| matches!(s, Source::Captured | Source::Constant(_));
        let captured = blocks.filter(|(_, (_, source))| is_captured(source));
        captured.map(|(n, (block, _))| (n as u32, block.clone())).collect()
    }

    /// What was made and lies outside of the arena; tensors that still hold it show it.
    fn slots(&self) -> Vec<Slot> {
        let slot = |(n, block): (usize, &Arc<Block>)| {
            let latest = Arc::<Latest>::default();
            let is_kept = self.kept.contains(&(n as u32));
            let latest = if is_kept { block.follow(&latest).clone() } else { latest };
            Slot { block: n as u32, bytes: block.bytes(), latest }
        };
        let blocks = self.queue.blocks().iter().enumerate();
        blocks.filter(|(n, _)| self.roles[*n] == Role::Slot).map(slot).collect()
    }
}

impl Executable {
    /// The tensors that are still held of an equal recording show this graph's runs from now on.
    pub fn adopt(&self, recording: &Recording) {
        for slot in &self.slots {
            if recording.kept.contains(&slot.block) {
                recording.queue.blocks()[slot.block as usize].follow(&slot.latest);
            }
        }
    }
}

impl Executable {
    /// Bytes by account of what a run needs, whether it is there yet or not.
    pub fn memory(&self) -> Vec<(Account, usize)> {
        let mut accounts = Account::ALL.map(|account| (account, 0));
        let mut add = |account: Account, bytes| accounts[account as usize].1 += bytes;
        self.captured.iter().for_each(|(_, block)| add(block.account(), block.bytes()));
        self.slots.iter().for_each(|slot| add(Account::Results, slot.bytes));
        add(Account::Arena, self.graph.arena_bytes());
        let given: FxHashSet<u32> = self.arguments.iter().map(|place| place.block).collect();
        given.iter().for_each(|n| add(Account::Staging, self.graph.block_bytes(*n)));
        accounts.to_vec()
    }

    /// How often a tensor object was pointed away from memory that the graph captured.
    pub fn departures(&self) -> u32 {
        self.captured.iter().map(|(_, block)| block.departures()).fold(0, u32::wrapping_add)
    }

    /// What tells captured blocks apart, by [`Arc::as_ptr`].
    pub fn captured_ids(&self) -> Vec<usize> {
        self.captured.iter().map(|(_, block)| Arc::as_ptr(block).addr()).collect()
    }
}
