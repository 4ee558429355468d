//! Recorded steps as files: a step runs without the code that recorded it, in training as well as
//! in evaluation, from Rust, C ([`crate::capi`]) and Python.
//!
//! A file holds the operations as recorded, the contents of parameters, states and constants, and
//! the names of arguments, results and states. Rewriting, planning and packing take place where it
//! is read, so it moves between machines; on one machine a step computes the same bits as the
//! process that recorded it. The state of the random generator is one of the states.

mod arguments;
mod describe;
mod file;
mod format;
mod read;
mod write;

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use smallvec::smallvec;

use crate::engine::record::{self, Mode};
use crate::engine::{self, Engine, Executable, Recording};
use crate::error::{Error, Result, locked};
use crate::ops::View;
use crate::ops::copy::Copy;
use crate::view::Meta;
pub use describe::Tensor;
pub use format::Settings;
pub use write::{Names, Returned, write};

/// A step that was read from a file.
///
/// ```no_run
/// use singa_rs::step::Step;
///
/// let mut step = Step::open("step.srs")?;
/// let images = vec![0; step.arguments()[0].bytes()];
/// step.bind(0, &images)?;
/// step.run()?;
/// let mut scores = vec![0; step.results()[0].bytes()];
/// step.result(0, &mut scores)?;
/// # Ok::<(), singa_rs::Error>(())
/// ```
pub struct Step {
    engine: &'static Engine,
    recording: Recording,
    settings: Settings,
    /// All that the file holds before the contents of blocks, which alone change from run to run.
    head: Vec<u8>,
    arguments: Vec<Tensor>,
    results: Vec<Tensor>,
    states: Vec<(Tensor, View)>,
    planned: Mutex<Option<Planned>>,
    /// What [`Step::bind`] has written, by argument.
    bound: Vec<Option<View>>,
    /// The results of the last [`Step::run`].
    made: Vec<View>,
}

/// The graph, and the number of threads that it is planned for.
struct Planned {
    threads: usize,
    graph: Arc<Executable>,
}

impl Step {
    /// Reads and plans a step.
    ///
    /// # Errors
    /// [`Error::Checkpoint`] for a file that is missing, damaged or of another kind;
    /// [`Error::OutOfMemory`], [`Error::Budget`].
    pub fn open(path: impl AsRef<Path>) -> Result<Step> {
        let path = path.as_ref();
        let refused = |error| file::refused("Step::open", path, error);
        let mut file = File::open(path).map_err(refused)?;
        let found = file.metadata().map_err(refused)?;
        file::check_kind("Step::open", path, &found)?;
        Step::read(engine::host(), &mut file, found.len()).map_err(|error| error.within(path))
    }

    /// What it takes.
    pub fn arguments(&self) -> &[Tensor] {
        &self.arguments
    }

    /// What it returns.
    pub fn results(&self) -> &[Tensor] {
        &self.results
    }

    /// What is kept from run to run: parameters, moments, averages, counters, the generator.
    pub fn states(&self) -> impl ExactSizeIterator<Item = &Tensor> {
        self.states.iter().map(|(state, _)| state)
    }

    /// A state itself, which shows the latest run.
    pub fn state_view(&self, index: usize) -> Option<&View> {
        self.states.get(index).map(|(_, view)| view)
    }

    /// Runs the step on these tensors; returns the results, each a new tensor. Arguments that lie
    /// in memory otherwise than when the step was recorded are copied.
    ///
    /// # Errors
    /// [`Error::Arity`], [`Error::Shape`], [`Error::DType`] or [`Error::Device`], naming the
    /// argument, before anything runs; [`Error::Graph`] while this thread records; those of
    /// [`Executable::run`].
    pub fn call(&self, arguments: &[View]) -> Result<Vec<View>> {
        let message = "a step is run while another one is recorded, which would keep its results";
        let is_recording = record::mode() != Mode::Eager;
        crate::ensure!(!is_recording, Error::graph("Step.run", message));
        let graph = self.graph()?;
        let arguments = self.admitted(&graph, arguments)?;
        graph.run(self.engine, self.engine.run()?, &arguments)
    }

    /// Writes an argument of the next runs, row-major.
    ///
    /// # Errors
    /// [`Error::Value`] for an argument that there is not, or another number of bytes;
    /// [`Error::OutOfMemory`].
    pub fn bind(&mut self, index: usize, bytes: &[u8]) -> Result<()> {
        let argument = describe::at("Step::bind", "argument", &self.arguments, index)?;
        argument.check_bytes("Step::bind", bytes.len())?;
        let view = View::of(self.engine.device(), &self.recording.arguments()[index].meta);
        let turn = self.engine.turn();
        let place = self.bound[index].get_or_insert(view);
        place.block.write(bytes)?;
        place.block.touch();
        drop(turn);
        Ok(())
    }

    /// Runs the step on what [`Step::bind`] has written.
    ///
    /// # Errors
    /// [`Error::Value`] for an argument that was never bound; those of [`Step::call`].
    pub fn run(&mut self) -> Result<()> {
        let missing = self.bound.iter().position(Option::is_none);
        let name = |index: usize| format!("no value for argument {}", self.arguments[index].name);
        let refusal = |index| Error::value("Step::run", name(index), "all arguments bound");
        missing.map_or(Ok(()), |index| Err(refusal(index)))?;
        self.made.clear(); // so that the run may use their memory
        let given: Vec<View> = self.bound.iter().flatten().cloned().collect();
        self.made = self.call(&given)?;
        Ok(())
    }

    /// Copies a result of the last run, row-major.
    ///
    /// # Errors
    /// [`Error::Value`] for a result that there is not, or another number of bytes; before a run.
    pub fn result(&self, index: usize, into: &mut [u8]) -> Result<()> {
        let result = describe::at("Step::result", "result", &self.results, index)?;
        result.check_bytes("Step::result", into.len())?;
        let missing = || Error::value("Step::result", "no run", "a run before its results");
        self.copy_out(self.made.get(index).ok_or_else(missing)?, into)
    }

    /// Copies a state, row-major.
    ///
    /// # Errors
    /// [`Error::Value`] for a state that there is not, or another number of bytes.
    pub fn state(&self, index: usize, into: &mut [u8]) -> Result<()> {
        let (state, view) = describe::at("Step::state", "state", &self.states, index)?;
        state.check_bytes("Step::state", into.len())?;
        self.copy_out(view, into)
    }

    /// Writes a state, row-major.
    ///
    /// # Errors
    /// As [`Step::state`].
    pub fn set_state(&mut self, index: usize, bytes: &[u8]) -> Result<()> {
        let (state, view) = describe::at("Step::set_state", "state", &self.states, index)?;
        state.check_bytes("Step::set_state", bytes.len())?;
        let from = self.row_major(view);
        let turn = self.engine.turn();
        from.block.write(bytes)?;
        drop(turn);
        self.copy(from, view)
    }

    /// Writes the step with its current states, replacing the file as a whole.
    ///
    /// # Errors
    /// [`Error::Checkpoint`] if the file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        file::replace("Step::save", path, |file| self.write(file))
    }

    /// The graph for the device's current number of threads.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::Budget`].
    pub fn graph(&self) -> Result<Arc<Executable>> {
        let threads = self.engine.device().threads();
        let mut planned = self.planned();
        if let Some(known) = planned.as_ref().filter(|planned| planned.threads == threads) {
            return Ok(known.graph.clone());
        }
        let options = self.settings.options(threads);
        let graph = Arc::new(Executable::new(self.engine, &self.recording, &options)?);
        *planned = Some(Planned { threads, graph: graph.clone() });
        Ok(graph)
    }

    fn planned(&self) -> MutexGuard<'_, Option<Planned>> {
        locked(&self.planned)
    }

    fn row_major(&self, view: &View) -> View {
        View::new(self.engine.device(), Meta::new(view.meta.dtype, view.meta.shape.clone()))
    }

    /// A row-major copy.
    fn copied(&self, view: &View) -> Result<View> {
        let made = self.row_major(view);
        self.copy(view.clone(), &made)?;
        Ok(made)
    }

    fn copy(&self, from: View, to: &View) -> Result<()> {
        let to = std::slice::from_ref(to);
        self.engine.submit_into(self.engine.turn(), &Copy.into(), smallvec![from], to)
    }

    fn copy_out(&self, view: &View, into: &mut [u8]) -> Result<()> {
        let copied = self.copied(view)?;
        let _turn = self.engine.turn();
        copied.block.read(|bytes| into.copy_from_slice(bytes))
    }
}
