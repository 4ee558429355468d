//! An engine that is recording: operations of the recording thread are only appended to a queue.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::initial::Initial;
use super::recording::Recording;
use super::seed::Seeded;
use crate::block::Block;
use crate::error::{Error, Result};
use crate::ops::{Meta, View};

/// What becomes of the operations that a thread submits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// They run at once.
    Eager,
    /// They are recorded.
    Record,
    /// They make state during a recording: they are kept as its pending initialisers.
    State,
}

thread_local! {
    static MODE: Cell<Mode> = const { Cell::new(Mode::Eager) };
    static RECORDER: RefCell<Option<Recorder>> = const { RefCell::new(None) };
}

/// What a thread is recording.
pub(super) struct Recorder {
    pub recording: Recording,
    /// State that is being made, and how many scopes deep.
    pub state: Initial,
    /// Where the generator of initial values stands, if the recording has started it anew.
    pub seeded: Option<Seeded>,
    depth: usize,
    lines: Lines,
}

impl Recorder {
    /// The line that operations now come from.
    pub fn line(&self) -> u32 {
        self.lines.current
    }
}

/// The lines of the user's program by number, and the one that operations now come from.
#[derive(Default)]
struct Lines {
    numbers: FxHashMap<Arc<str>, u32>,
    current: u32,
}

/// What becomes of the operations that this thread submits.
pub fn mode() -> Mode {
    MODE.get()
}

/// Begins to record on this thread.
///
/// # Errors
/// [`Error::Graph`] where it records already.
pub fn begin(recording: Recording) -> Result<()> {
    crate::ensure!(mode() == Mode::Eager, misuse("this thread records already"));
    let mut lines = Lines::default();
    for (number, line) in recording.lines().iter().enumerate() {
        lines.numbers.insert(line.clone(), number as u32);
    }
    let recorder = Recorder { recording, state: Initial::default(), seeded: None, depth: 0, lines };
    RECORDER.set(Some(recorder));
    MODE.set(Mode::Record);
    Ok(())
}

/// Ends what this thread records.
///
/// # Errors
/// [`Error::Graph`] where it does not record.
pub fn end() -> Result<Recording> {
    let recorder = RECORDER.take().ok_or_else(|| misuse("this thread does not record"))?;
    MODE.set(Mode::Eager);
    recorder.state.settle();
    Ok(recorder.recording)
}

/// Within a recording, what is made from now on is state, until [`leave_state`].
pub fn enter_state() {
    with(|recorder| {
        recorder.depth += 1;
        MODE.set(Mode::State);
    });
}

/// The end of what [`enter_state`] began.
pub fn leave_state() {
    with(|recorder| {
        recorder.depth = recorder.depth.saturating_sub(1);
        if recorder.depth == 0 {
            std::mem::take(&mut recorder.state).settle();
            MODE.set(Mode::Record);
        }
    });
}

/// The operations that follow come from this line of the user's program.
pub fn set_line(line: &str) {
    with(|recorder| {
        let next = recorder.lines.numbers.len() as u32;
        let known = recorder.lines.numbers.get(line).copied();
        recorder.lines.current = known.unwrap_or_else(|| {
            let line: Arc<str> = line.into();
            recorder.recording.add_line(line.clone());
            recorder.lines.numbers.insert(line, next);
            next
        });
    });
}

/// The number of the line that operations come from now.
pub fn line() -> Option<u32> {
    with(|recorder| recorder.lines.current)
}

/// The operations that follow come from a line that [`line`] told before.
pub fn set_line_number(number: u32) {
    with(|recorder| {
        if (number as usize) < recorder.recording.lines().len() {
            recorder.lines.current = number;
        }
    });
}

/// Refuses to read a value while it is only recorded. In a state scope, what is read is made.
///
/// # Errors
/// [`Error::Graph`] in a recording, naming the line where the value is made.
pub fn check_read(op: &'static str, view: &View) -> Result<()> {
    settle();
    if mode() != Mode::Record {
        return Ok(());
    }
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
    Err(Error::Graph { op: op.into(), message: what })
}

/// A new tensor, which while recording only stands for what a run will make.
pub fn fresh(device: &Arc<crate::device::Device>, meta: &Arc<Meta>) -> View {
    if mode() != Mode::Record {
        return View::of(device, meta);
    }
    let made = with(|recorder| {
        let line = recorder.recording.line(recorder.lines.current);
        let block = Block::recorded(device, meta.bytes(), line);
        recorder.recording.make(&block);
        View { block, meta: meta.clone(), offset: 0 }
    });
    made.unwrap_or_else(|| View::of(device, meta))
}

/// State that is being made may be read from now on.
pub(super) fn settle() {
    if mode() == Mode::State {
        with(|recorder| std::mem::take(&mut recorder.state).settle());
    }
}

/// What this thread is recording.
pub(super) fn with<T>(f: impl FnOnce(&mut Recorder) -> T) -> Option<T> {
    RECORDER.with_borrow_mut(|recorder| recorder.as_mut().map(f))
}

fn misuse(message: &str) -> Error {
    Error::Graph { op: "record".into(), message: message.into() }
}
