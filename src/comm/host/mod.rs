//! The processes of one machine, through shared memory: for tests and notebooks.
//!
//! Every rank has a chunk of the segment in which it shows the others bytes, and a number that says
//! how many chunks it has published. A round is cut into chunks. In each, a rank writes its own,
//! counts its number up, waits for all others to reach it, and reads theirs.
//!
//! Chunks of even and odd numbers have memory of their own, and nothing else keeps writers from
//! readers: a rank writes number s + 2 only after it has seen all others publish s + 1, and they
//! publish that after they have read all of s. So every rank publishes in every round, a receiver of
//! a broadcast, too. Numbers are never reset: a late rank cannot take one round for another.
//!
//! Between two ranks, the same holds of a ring of two parts with numbers of its own.
#![allow(unsafe_code)]

mod attach;
mod described;
mod pair;
mod peers;
mod report;
mod rounds;
mod segment;
mod signal;
mod text;
mod wait;

use std::cell::Cell;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;
use std::time::Duration;

use self::described::{Description, Route};
use self::report::News;
use self::segment::Segment;
use crate::comm::{Fault, Round, Transport};

/// How often a rank looks at a number before it sleeps: for some microseconds. Ranks that wait
/// longer leave the processor to those that they wait for.
const PAUSES: u32 = 200;

/// A rank of a group of processes of this machine.
pub struct Host {
    segment: Segment,
    path: PathBuf,
    rank: usize,
    process: u32,
    timeout: Duration,
    pauses: u32,
    /// Those of all ranks in the last round of all.
    steps: Box<[Cell<u64>]>,
    fault: Option<Fault>,
}

impl Host {
    /// Joins a group as one of its ranks. The path is the same for all of them: a new file, in
    /// `/dev/shm`, say, whose name the last of them removes, or `/proc/<pid>/fd/<number>` of an
    /// empty file in memory. The timeout is the longest that calls wait, this one included.
    ///
    /// # Errors
    /// [`Fault::System`] if the rank is taken, if the file belongs to another group, or if the system
    /// refuses.
    pub fn open(path: &Path, rank: usize, size: usize, timeout: Duration) -> Result<Self, Fault> {
        let segment = attach::attach(path, rank, size, timeout)?;
        let processors = available_parallelism().map_or(1, usize::from);
        let pauses = if size > processors { 0 } else { PAUSES };
        let (process, steps) = (std::process::id(), vec![Cell::default(); size].into());
        let path = path.to_owned();
        Ok(Host { segment, path, rank, process, timeout, pauses, steps, fault: None })
    }

    /// Does a rank's part of an operation unless the group has ended; a fault ends it.
    fn attempt(&mut self, part: impl FnOnce(&Host) -> Result<(), Fault>) -> Result<(), Fault> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        part(self).inspect_err(|fault| self.end(fault.clone()))
    }

    /// Ends the group for all its ranks.
    fn end(&mut self, fault: Fault) {
        self.segment.report().write(self.rank, &fault);
        self.segment.wake();
        self.fault.get_or_insert(fault);
    }

    fn other(&self, rank: usize) -> Result<(), Fault> {
        if rank < self.size() && rank != self.rank {
            return Ok(());
        }
        let (me, size) = (self.rank, self.size());
        Err(refused(format!("rank {me} of {size}: got rank {rank}, want another one of them")))
    }
}

impl Transport for Host {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.segment.size()
    }

    fn all_gather(&mut self, round: &Round, mine: &[u8], all: &mut [u8]) -> Result<(), Fault> {
        self.attempt(|host| {
            fits("all_gather", all.len(), host.size().checked_mul(mine.len()))?;
            host.gather(Description::new(round, Route::Gather, mine.len()), mine, all)
        })
    }

    fn all_to_all(&mut self, round: &Round, send: &[u8], received: &mut [u8]) -> Result<(), Fault> {
        self.attempt(|host| {
            let each = send.len() / host.size();
            fits("all_to_all", send.len(), each.checked_mul(host.size()))?;
            fits("all_to_all", received.len(), Some(send.len()))?;
            host.exchange(Description::new(round, Route::Exchange, each), send, received)
        })
    }

    fn broadcast(&mut self, round: &Round, bytes: &mut [u8], root: usize) -> Result<(), Fault> {
        self.attempt(|host| {
            if root >= host.size() {
                let size = host.size();
                return Err(refused(format!("broadcast: got root {root}, want one of {size}")));
            }
            host.spread(Description::new(round, Route::Broadcast(root), bytes.len()), bytes, root)
        })
    }

    fn send(&mut self, round: &Round, bytes: &[u8], to: usize) -> Result<(), Fault> {
        self.attempt(|host| {
            host.other(to)?;
            host.give(Description::new(round, Route::Pair, bytes.len()), bytes, to)
        })
    }

    fn receive(&mut self, round: &Round, bytes: &mut [u8], from: usize) -> Result<(), Fault> {
        self.attempt(|host| {
            host.other(from)?;
            host.take(Description::new(round, Route::Pair, bytes.len()), bytes, from)
        })
    }

    fn steps(&self) -> Vec<u64> {
        self.steps.iter().map(Cell::get).collect()
    }

    fn fail(&mut self, text: &str) {
        self.end(Fault::Failed { rank: self.rank, text: text.into() });
    }

    fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    fn idle(&mut self) -> Result<(), Fault> {
        if let (None, News::Fault(fault)) = (&self.fault, self.segment.report().read(self.rank)) {
            self.fault = Some(fault);
        }
        self.fault.clone().map_or(Ok(()), Err)
    }
}

impl Drop for Host {
    /// A child that this process has forked is not the rank.
    fn drop(&mut self) {
        if self.process == std::process::id() {
            self.segment.member(self.rank).identity.leave();
            attach::leave(&self.path);
        }
    }
}

/// The ranges of at most `most` bytes in which so many are moved: at least one, which may be empty.
fn cut(bytes: usize, most: usize) -> impl Iterator<Item = Range<usize>> {
    (0..bytes.max(1)).step_by(most).map(move |start| start..bytes.min(start.saturating_add(most)))
}

fn fits(what: &str, got: usize, want: Option<usize>) -> Result<(), Fault> {
    let differs = || refused(format!("{what}: got {got} bytes, want {want:?}"));
    if want == Some(got) { Ok(()) } else { Err(differs()) }
}

fn refused(text: String) -> Fault {
    Fault::System(format!("host: {text}"))
}

#[cfg(test)]
mod tests;
