//! Writing steps.

use std::collections::HashSet;
use std::io::Write;
use std::sync::Arc;

use super::Step;
use super::format::{self, Header, Named, Settings};
use crate::block::Block;
use crate::engine::{Engine, Recording, SavedPlace};
use crate::error::{Error, Result};
use crate::graph::{Checksum, Origin};
use crate::ops::View;

const OP: &str = "save_step";

/// The names of a recording's tensors.
pub struct Names {
    /// One for each argument.
    pub arguments: Vec<String>,
    /// Results in order, each with its name.
    pub results: Vec<(String, Returned)>,
    /// Tensors that existed before the recording; those that it does not use are left out.
    pub states: Vec<(String, View)>,
}

/// Where a result comes from.
pub enum Returned {
    /// It is the recording's result with this index.
    Made(usize),
    /// It is the argument with this index.
    Argument(usize),
    /// It existed before the recording, which uses it.
    Held(View),
}

/// Writes a sealed recording, and the present contents of what it uses, as a step.
///
/// # Errors
/// [`Error::Graph`] for a recording that runs user code, or whose tensors share memory that belongs
/// to another library; [`Error::Checkpoint`] if writing fails.
pub fn write(
    engine: &Engine,
    recording: &Recording,
    settings: Settings,
    names: Names,
    to: &mut impl Write,
) -> Result<()> {
    let message = "tensors that the step uses share memory of another library";
    crate::ensure!(!recording.has_aliases(), refusal(message));
    let operations = recording.to_bytes().map_err(|error| error.in_op(OP))?;
    let blocks = blocks(recording);
    let contents = blocks.iter().map(|block| padded(block)).sum();
    let header = header(recording, settings, names)?;
    let mut bytes = Vec::new();
    let refused = |error: ciborium::ser::Error<_>| refusal(&error.to_string());
    ciborium::into_writer(&header, &mut bytes).map_err(refused)?;
    let head = format::head(&operations, &bytes, contents)?;
    write_all(engine, &head, &blocks, to)
}

impl Step {
    /// Writes the step with its current states. Never call this while holding the GIL.
    ///
    /// # Errors
    /// [`Error::Checkpoint`] if writing fails.
    pub fn write(&self, to: &mut impl Write) -> Result<()> {
        write_all(self.engine, &self.head, &blocks(&self.recording), to)
    }
}

/// The blocks whose contents a file holds, in order.
pub(super) fn blocks(recording: &Recording) -> Vec<Arc<Block>> {
    recording.captured().into_iter().map(|(_, block)| block).collect()
}

/// Bytes that a block's contents take in a file.
pub(super) fn padded(block: &Block) -> usize {
    block.bytes() + format::padding(block.bytes())
}

fn header(recording: &Recording, settings: Settings, names: Names) -> Result<Header> {
    let arguments = recording.arguments().iter().map(SavedPlace::from);
    let held = |view: &View| recording.captured_place(view);
    let result = |(name, returned): (String, Returned)| {
        let place = match &returned {
            Returned::Made(index) => recording.results().get(*index).cloned(),
            Returned::Argument(index) => recording.arguments().get(*index).cloned(),
            Returned::Held(view) => held(view),
        };
        let missing = || refusal(&format!("result {name} is a tensor that the step does not use"));
        place.ok_or_else(missing).map(|place| (name, SavedPlace::from(&place)))
    };
    let state = |(name, view): (String, View)| Some((name, SavedPlace::from(&held(&view)?)));
    Ok(Header {
        settings,
        arguments: names.arguments.into_iter().zip(arguments).collect(),
        results: names.results.into_iter().map(result).collect::<Result<_>>()?,
        states: distinct(names.states.into_iter().filter_map(state)),
        origins: recording.origins().iter().map(without_folder).collect(),
    })
}

/// The first name of each place; a name that another place has gets a number.
fn distinct(states: impl Iterator<Item = Named>) -> Vec<Named> {
    let (mut found, mut names, mut places) = (Vec::new(), HashSet::new(), HashSet::new());
    for (name, place) in states {
        if places.insert(place.clone()) {
            let numbered = (2..).map(|count: usize| format!("{name}#{count}"));
            let mut all = std::iter::once(name.clone()).chain(numbered);
            let name = all.find(|name| names.insert(name.clone())).expect("there are many");
            found.push((name, place));
        }
    }
    found
}

/// An origin without the folder of its file, which means nothing on another machine.
fn without_folder(origin: &Origin) -> Origin {
    let line = origin.line.rsplit(['/', '\\']).next().unwrap_or(&origin.line).into();
    Origin { line, ..origin.clone() }
}

fn write_all(
    engine: &Engine,
    head: &[u8],
    blocks: &[Arc<Block>],
    to: &mut impl Write,
) -> Result<()> {
    let refused = |error: std::io::Error| format::refusal(OP, error.to_string());
    to.write_all(head).map_err(refused)?;
    let mut sum = Checksum::default();
    for block in blocks {
        // A copy, as whoever writes may need the GIL, which no holder of the turn may wait for.
        let turn = engine.turn();
        let mut bytes = block.save()?;
        drop(turn);
        bytes.resize(padded(block), 0);
        sum.add(&bytes);
        to.write_all(&bytes).map_err(refused)?;
    }
    to.write_all(&sum.bytes()).map_err(refused)
}

fn refusal(message: &str) -> Error {
    Error::graph(OP, message)
}
