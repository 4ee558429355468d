//! The layout of a file: see docs/steps.md.

use serde::{Deserialize, Serialize};

use crate::engine::{Budget, Options, SavedPlace};
use crate::error::{Error, Result};
use crate::graph::{Checksum, Origin, Parallel};

/// The first bytes of every file.
const MAGIC: &[u8; 8] = b"singastp";
/// The version of what follows: increased whenever earlier files would be read differently.
const VERSION: u32 = 2;
/// Bytes of the prefix: magic, version, alignment, three lengths, a checksum.
pub(super) const PREFIX: usize = 48;
/// What the head and the contents of each block are padded to.
const ALIGNMENT: usize = 64;
/// The most bytes of operations and header together: a thousand operations take about 100 KiB.
pub(super) const MOST: usize = 32 << 20;
/// Bytes of a checksum.
pub(super) const CHECKSUM: usize = 8;

/// How the program asked for the step to be run.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Settings {
    /// Whether rewrites must keep every bit of the results.
    pub exact: bool,
    /// Whether a run stops at the first NaN or infinity.
    pub check_finite: bool,
    /// Whether several threads may run operations concurrently.
    pub parallel: bool,
    /// The limit on the arena.
    pub budget: Option<Budget>,
}

impl Settings {
    pub(super) fn options(&self, threads: usize) -> Options {
        Options {
            exact: self.exact,
            check_finite: self.check_finite,
            parallel: self.parallel.then(|| Parallel::new(threads)),
            budget: self.budget,
            ..Options::default()
        }
    }
}

/// A tensor with its name and place.
pub(super) type Named = (String, SavedPlace);

/// What is known of a step besides its operations.
#[derive(Serialize, Deserialize)]
pub(super) struct Header {
    pub settings: Settings,
    pub arguments: Vec<Named>,
    pub results: Vec<Named>,
    pub states: Vec<Named>,
    /// Where the operations come from, by number.
    pub origins: Vec<Origin>,
}

/// How long the parts of a file are.
#[derive(Clone, Copy)]
pub(super) struct Lengths {
    pub operations: usize,
    pub header: usize,
    /// The contents of the blocks, padded.
    pub contents: usize,
}

impl Lengths {
    /// Where the contents begin; None if there is too much before them.
    pub fn head(&self) -> Option<usize> {
        let bytes = self.operations.checked_add(self.header).filter(|&bytes| bytes <= MOST)?;
        Some(PREFIX + bytes + padding(PREFIX + bytes))
    }

    /// Bytes of the whole file.
    pub fn file(&self) -> Option<usize> {
        self.head()?.checked_add(self.contents)?.checked_add(CHECKSUM)
    }
}

/// Zeros that follow so many bytes.
pub(super) fn padding(bytes: usize) -> usize {
    bytes.wrapping_neg() % ALIGNMENT
}

/// Everything before the contents.
///
/// # Errors
/// [`Error::Graph`] for too many operations.
pub(super) fn head(operations: &[u8], header: &[u8], contents: usize) -> Result<Vec<u8>> {
    let bytes = operations.len() + header.len();
    let message = || format!("its operations take {bytes} bytes, want at most {MOST}");
    let refusal = || Error::graph("save_step", message());
    crate::ensure!(bytes <= MOST, refusal());
    let word = |length: usize| (length as u64).to_le_bytes();
    let alignment = (ALIGNMENT as u32).to_le_bytes();
    let lengths = [word(operations.len()), word(header.len()), word(contents)].concat();
    let start = [MAGIC, &VERSION.to_le_bytes()[..], &alignment, &lengths].concat();
    let sum = checksum(&[&start, operations, header]);
    let mut head = [&start[..], &sum, operations, header].concat();
    head.resize(head.len() + padding(head.len()), 0);
    Ok(head)
}

/// The lengths in a prefix, which must be those of a file of `size` bytes.
pub(super) fn lengths(prefix: &[u8; PREFIX], size: u64) -> Result<Lengths> {
    crate::ensure!(prefix.starts_with(MAGIC), damaged("it is no step"));
    let number = |at: usize| u32::from_le_bytes(prefix[at..at + 4].try_into().expect("four bytes"));
    let message = || format!("it has version {}, and this is version {VERSION}", number(8));
    crate::ensure!(number(8) == VERSION, damaged(message()));
    let word = |at: usize| u64::from_le_bytes(prefix[at..at + 8].try_into().expect("eight bytes"));
    let length = |at: usize| usize::try_from(word(at)).unwrap_or(usize::MAX);
    let lengths = Lengths { operations: length(16), header: length(24), contents: length(32) };
    let is_whole = lengths.file().is_some_and(|bytes| bytes as u64 == size);
    let message = || format!("it is truncated or damaged: it has {size} bytes");
    crate::ensure!(is_whole && number(12) as usize == ALIGNMENT, damaged(message()));
    Ok(lengths)
}

fn checksum(parts: &[&[u8]]) -> [u8; CHECKSUM] {
    let mut sum = Checksum::default();
    parts.iter().for_each(|part| sum.add(part));
    sum.bytes()
}

/// The operations and the header of a head whose checksum fits.
pub(super) fn parts<'a>(head: &'a [u8], lengths: &Lengths) -> Result<(&'a [u8], Header)> {
    let (prefix, rest) = head.split_at(PREFIX);
    let (parts, zeros) = rest.split_at(lengths.operations + lengths.header);
    let (start, sum) = prefix.split_at(PREFIX - CHECKSUM);
    let is_whole = checksum(&[start, parts]) == sum && zeros.iter().all(|&b| b == 0);
    crate::ensure!(is_whole, damaged("it is damaged"));
    let (operations, mut header) = parts.split_at(lengths.operations);
    let found = ciborium::from_reader(&mut header);
    let found = found.map_err(|error| damaged(format!("its header is damaged: {error}")))?;
    crate::ensure!(header.is_empty(), damaged("more follows its header"));
    Ok((operations, found))
}

/// The error of a file that is not sound.
pub(super) fn damaged(message: impl Into<String>) -> Error {
    refusal("Step::open", message)
}

/// The error of an operation on files.
pub(super) fn refusal(op: &'static str, message: impl Into<String>) -> Error {
    Error::Checkpoint { op: op.into(), message: message.into() }
}
