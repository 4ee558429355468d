//! Recording: the operations that the recording thread submits are only appended to a queue.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::block::Block;
use crate::device::Device;
use crate::engine::recording::Recording;
use crate::engine::recording::initial::Initial;
use crate::engine::rng::Seeded;
use crate::error::{Error, Result};
use crate::graph::Origin;
use crate::ops::{Meta, View};

/// What happens to the operations that a thread submits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// They run at once.
    Eager,
    /// They are recorded.
    Record,
    /// They create state during a recording: they are deferred as its initialisers.
    State,
}

thread_local! {
    static MODE: Cell<Mode> = const { Cell::new(Mode::Eager) };
    static RECORDER: RefCell<Option<Recorder>> = const { RefCell::new(None) };
}

/// The recorder of a thread.
pub(in crate::engine) struct Recorder {
    pub recording: Recording,
    /// The operations of state scopes.
    pub state: Initial,
    /// The position of the generator of initial values, if the recording has reseeded it.
    pub seeded: Option<Seeded>,
    depth: usize,
    origins: Origins,
}

impl Recorder {
    /// The number of the origin of operations now.
    pub fn origin(&self) -> u32 {
        self.origins.current
    }
}

/// The numbers of origins, and the one that operations have now.
#[derive(Default)]
struct Origins {
    numbers: FxHashMap<Origin, u32>,
    current: u32,
}

/// What happens to the operations that this thread submits.
pub fn mode() -> Mode {
    MODE.get()
}

/// The device of the step that this thread records.
pub fn device() -> Option<Arc<Device>> {
    with(|recorder| recorder.recording.device().clone())
}

/// Starts recording on this thread.
///
/// # Errors
/// [`Error::Graph`] if it is already recording.
pub fn begin(recording: Recording) -> Result<()> {
    crate::ensure!(mode() == Mode::Eager, misuse("this thread records already"));
    let known = recording.origins().iter().cloned().zip(0..);
    let origins = Origins { numbers: known.collect(), current: 0 };
    let (state, seeded) = (Initial::default(), None);
    let recorder = Recorder { recording, state, seeded, depth: 0, origins };
    RECORDER.set(Some(recorder));
    MODE.set(Mode::Record);
    Ok(())
}

/// Ends the recording on this thread.
///
/// # Errors
/// [`Error::Graph`] if it is not recording.
pub fn end() -> Result<Recording> {
    let recorder = RECORDER.take().ok_or_else(|| misuse("this thread does not record"))?;
    MODE.set(Mode::Eager);
    recorder.state.settle();
    Ok(recorder.recording)
}

/// Enters a scope of a recording in which tensors are state, until [`leave_state`].
pub fn enter_state() {
    with(|recorder| {
        recorder.depth += 1;
        MODE.set(Mode::State);
    });
}

/// Leaves the scope that [`enter_state`] entered.
pub fn leave_state() {
    with(|recorder| {
        recorder.depth = recorder.depth.saturating_sub(1);
        if recorder.depth == 0 {
            std::mem::take(&mut recorder.state).settle();
            MODE.set(Mode::Record);
        }
    });
}

/// Gives the operations that follow an origin.
pub fn set_origin(origin: Origin) {
    with(|recorder| {
        let next = recorder.recording.origins().len() as u32;
        let number = *recorder.origins.numbers.entry(origin.clone()).or_insert(next);
        if number == next {
            recorder.recording.add_origin(origin);
        }
        recorder.origins.current = number;
    });
}

/// The number of the origin that operations have now.
pub fn origin() -> Option<u32> {
    with(|recorder| recorder.origins.current)
}

/// Gives the operations that follow the origin of a number that [`origin()`] returned.
pub fn set_origin_number(number: u32) {
    with(|recorder| {
        if (number as usize) < recorder.recording.origins().len() {
            recorder.origins.current = number;
        }
    });
}

/// The origin of a number that [`origin()`] returned.
pub fn origin_of(number: u32) -> Option<Origin> {
    with(|recorder| recorder.recording.origins().get(number as usize).cloned()).flatten()
}

/// Refuses to read values while recording. In a state scope, makes pending state readable instead.
///
/// # Errors
/// [`Error::Graph`] while recording; it names the line that computes the value, if that is
/// recorded.
pub fn check_read(op: &'static str, view: &View) -> Result<()> {
    settle();
    if mode() != Mode::Record {
        return Ok(());
    }
    with(|recorder| recorder.recording.refuse_read());
    let line = view.block.recorded_at();
    let what = line.map_or_else(
        || {
            "a value is read while a step is recorded, so that replays would not see it change; \
            return the tensor, or compile with use_graph=False"
                .into()
        },
        |line| {
            format!(
                "the tensor is only recorded, at {line}, and has no value before the step \
                        has run; return it, or compile with use_graph=False"
            )
        },
    );
    Err(Error::graph(op, what))
}

/// A new tensor, which while recording is a placeholder for what a run will compute.
pub fn fresh(device: &Arc<Device>, meta: &Arc<Meta>) -> View {
    if mode() != Mode::Record {
        return View::of(device, meta);
    }
    let made = with(|recorder| {
        let origin = &recorder.recording.origins()[recorder.origins.current as usize];
        let block = Block::recorded(device, meta.bytes(), origin.line.clone());
        recorder.recording.make(&block);
        View { block, meta: meta.clone(), offset: 0 }
    });
    made.unwrap_or_else(|| View::of(device, meta))
}

/// Makes state that is being collected readable.
pub(in crate::engine) fn settle() {
    if mode() == Mode::State {
        with(|recorder| std::mem::take(&mut recorder.state).settle());
    }
}

/// Calls `f` with this thread's recorder, if it is recording.
pub(in crate::engine) fn with<T>(f: impl FnOnce(&mut Recorder) -> T) -> Option<T> {
    RECORDER.with_borrow_mut(|recorder| recorder.as_mut().map(f))
}

fn misuse(message: &str) -> Error {
    Error::graph("record", message)
}
