//! Reading steps, from files that nobody vouches for.

use std::io::{ErrorKind, Read};
use std::path::Path;
use std::sync::{Arc, Mutex};

use super::format::{self, CHECKSUM, Header, Lengths, Named, PREFIX, damaged};
use super::write::{blocks, padded};
use super::{Step, Tensor};
use crate::block::Block;
use crate::device::Account;
use crate::engine::{Engine, Recording};
use crate::error::{Error, Result};
use crate::graph::Checksum;

/// How much is read at once.
const PIECE: usize = 1 << 20;

impl Step {
    /// Reads and plans a step from a file of `size` bytes. Everything is checked as if it were
    /// recorded, and nothing takes more memory than the file has bytes for.
    ///
    /// # Errors
    /// As [`Step::open`].
    pub fn read(engine: &'static Engine, file: &mut impl Read, size: u64) -> Result<Step> {
        let mut prefix = [0; PREFIX];
        crate::ensure!(size >= (PREFIX + CHECKSUM) as u64, damaged("it is too short for a step"));
        fill(file, &mut prefix)?;
        let lengths = format::lengths(&prefix, size)?;
        let head = head(file, &prefix, &lengths)?;
        let (operations, header) = format::parts(&head, &lengths)?;
        let recording = recording(engine, operations, &header)?;
        let blocks = blocks(&recording);
        let contents = blocks.iter().map(|block| padded(block)).sum::<usize>();
        crate::ensure!(contents == lengths.contents, damaged("its contents have another size"));
        read_contents(engine, file, &blocks)?;
        let step = assembled(engine, recording, header, head)?;
        step.graph().map_err(unplanned)?;
        Ok(step)
    }
}

/// Reads everything before the contents.
fn head(file: &mut impl Read, prefix: &[u8], lengths: &Lengths) -> Result<Vec<u8>> {
    let bytes = lengths.head().ok_or_else(|| damaged("it is too long"))?;
    let mut head = Vec::new();
    let refusal = |_| damaged(format!("its header takes {bytes} bytes, which are not available"));
    head.try_reserve_exact(bytes).map_err(refusal)?;
    head.extend_from_slice(prefix);
    head.resize(bytes, 0);
    fill(file, &mut head[PREFIX..])?;
    Ok(head)
}

fn recording(engine: &Engine, operations: &[u8], header: &Header) -> Result<Recording> {
    let places = |named: &[Named]| named.iter().map(|(_, place)| place.clone()).collect::<Vec<_>>();
    let (arguments, results) = (places(&header.arguments), places(&header.results));
    let read = Recording::from_bytes(
        engine.device(),
        operations,
        &arguments,
        &results,
        header.origins.clone(),
    );
    read.map_err(|error| damaged(format!("its operations are damaged: {error}")))
}

fn read_contents(engine: &Engine, file: &mut impl Read, blocks: &[Arc<Block>]) -> Result<()> {
    let (mut sum, mut piece) = (Checksum::default(), Vec::new());
    for block in blocks {
        block.set_account(Account::States);
        let (bytes, padded) = (block.bytes(), padded(block));
        for start in (0..padded).step_by(PIECE) {
            piece.resize(PIECE.min(padded - start), 0);
            fill(file, &mut piece)?;
            sum.add(&piece);
            let _turn = engine.turn();
            block.write_at(start, &piece[..piece.len().min(bytes.saturating_sub(start))])?;
        }
    }
    let mut wanted = [0; CHECKSUM];
    fill(file, &mut wanted)?;
    crate::ensure!(sum.bytes() == wanted, damaged("its contents are damaged"));
    Ok(())
}

fn assembled(
    engine: &'static Engine,
    recording: Recording,
    header: Header,
    head: Vec<u8>,
) -> Result<Step> {
    let described = |(name, place): Named| Tensor::new(name, &place.meta);
    let state = |(name, place): Named| {
        let view = recording.captured_view(&place);
        let view = view.map_err(|error| damaged(format!("state {name}: {error}")))?;
        Ok((Tensor::new(name, &place.meta), view))
    };
    let states = header.states.into_iter().map(state).collect::<Result<_>>()?;
    let arguments: Vec<Tensor> = header.arguments.into_iter().map(described).collect();
    Ok(Step {
        engine,
        settings: header.settings,
        head,
        bound: vec![None; arguments.len()],
        arguments,
        results: header.results.into_iter().map(described).collect(),
        states,
        recording,
        planned: Mutex::new(None),
        made: Vec::new(),
    })
}

/// What fails where operations are planned is damage, unless memory is lacking.
fn unplanned(error: Error) -> Error {
    match error {
        Error::OutOfMemory { .. } | Error::Budget { .. } | Error::Device { .. } => error,
        other => damaged(format!("its operations cannot be planned: {other}")),
    }
}

/// Fills a buffer.
fn fill(file: &mut impl Read, buffer: &mut [u8]) -> Result<()> {
    file.read_exact(buffer).map_err(|error| match error.kind() {
        ErrorKind::UnexpectedEof => damaged("it is truncated"),
        _ => damaged(format!("it cannot be read: {error}")),
    })
}

impl Error {
    /// The error of reading a file, with its path.
    pub(super) fn within(self, path: &Path) -> Error {
        match self {
            Error::Checkpoint { op, message } => {
                Error::Checkpoint { op, message: format!("{}: {message}", path.display()) }
            }
            other => other,
        }
    }
}
