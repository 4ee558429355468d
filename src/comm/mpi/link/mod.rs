//! One rank's end of the transport: how ranks agree on what they have come with and exchange it in
//! pieces, and what becomes of faults.
#![allow(unsafe_code)]

mod rounds;

use std::array;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use crate::comm::mpi::Handles;
use crate::comm::mpi::api::{Api, Handle};
use crate::comm::mpi::control::Control;
use crate::comm::mpi::lane::{Lane, Transfer};
use crate::comm::mpi::message::Message;
use crate::comm::mpi::monitor::{Awaited, Monitor};
use crate::comm::mpi::peers::{self, Peers};
use crate::comm::mpi::record::{self, INLINE, Way};
use crate::comm::{Fault, Round, Transport};

/// About how many bytes a rank sends or receives by one request: few enough that they are still in
/// the processor's cache when they are copied.
const PIECE: usize = 512 << 10;
/// How many pieces are under way at a time.
const LANES: usize = 3;
/// Pieces begin at multiples of a cache line.
const LINE: usize = 64;

/// One rank's end of the transport.
pub struct Link<H: Handle> {
    lanes: [Lane<H>; LANES],
    monitor: Monitor<H>,
    /// Those of all ranks in the last round of all.
    steps: Vec<u64>,
    fault: Option<Fault>,
}

impl<H: Handle> Link<H> {
    /// Opens this rank's end, together with all others.
    ///
    /// # Safety
    /// As for [`open`](crate::comm::mpi::open); handles have the size of `H`.
    pub unsafe fn open(
        library: &Path,
        handles: &Handles,
        timeout: Duration,
    ) -> Result<Self, Fault> {
        // SAFETY: guaranteed by the caller.
        let api = unsafe { Api::<H>::load(library, handles) }?;
        let (control, peers) = (Control::new(api.size), Peers::unknown(api.size));
        let monitor = Monitor { api, control, peers, rounds: 0, timeout };
        let (lanes, steps) = (array::from_fn(|_| Lane::new()), Vec::new());
        let mut link = Link { lanes, monitor, steps, fault: None };
        link.lanes[0].fill(peers::IDENTITY).copy_from_slice(&peers::identity());
        link.transfer(Transfer::AllGather, None)?;
        link.monitor.peers = Peers::new(&link.lanes[0].received()[..link.size() * peers::IDENTITY]);
        Ok(link)
    }

    /// Runs one transfer in the first lane.
    fn transfer(&mut self, transfer: Transfer, awaited: Awaited) -> Result<(), Fault> {
        self.lanes[0].start(&self.monitor.api, transfer)?;
        self.monitor.wait(&mut self.lanes[0], awaited)
    }

    /// Refuses the round unless all ranks have come with it; `small` reaches all if it travels
    /// [inline](record::INLINE).
    fn agree(&mut self, round: &Round, way: Way, bytes: usize, small: &[u8]) -> Result<(), Fault> {
        self.monitor.rounds += 1;
        self.introduce(round, way, bytes, small);
        self.transfer(Transfer::AllGather, None)?;
        let ours = &self.records()[self.rank() * record::BYTES..][..record::BYTES];
        let mut theirs = self.records().chunks_exact(record::BYTES).enumerate();
        theirs.try_for_each(|(rank, theirs)| record::compare(ours, theirs, rank))?;
        self.steps = self.records().chunks_exact(record::BYTES).map(record::step).collect();
        Ok(())
    }

    /// Writes this rank's record into the first lane.
    fn introduce(&mut self, round: &Round, way: Way, bytes: usize, small: &[u8]) {
        let ours = self.lanes[0].fill(record::BYTES);
        record::write(ours, round, way, bytes);
        if small.len() <= INLINE {
            record::payload_mut(ours)[..small.len()].copy_from_slice(small);
        }
    }

    /// The records of all ranks.
    fn records(&self) -> &[u8] {
        &self.lanes[0].received()[..self.size() * record::BYTES]
    }

    /// What has come inline, by rank.
    fn payloads(&self) -> impl Iterator<Item = &[u8]> {
        self.records().chunks_exact(record::BYTES).map(record::payload)
    }

    /// Exchanges `bytes` bytes in pieces of `piece`: `fill` prepares the exchange of a piece, `take`
    /// gets what the lane has received for it while the next ones are under way.
    fn in_pieces(
        &mut self,
        awaited: Awaited,
        (bytes, piece): (usize, usize),
        mut fill: impl FnMut(&mut Lane<H>, Range<usize>) -> Transfer,
        mut take: impl FnMut(&[u8], Range<usize>),
    ) -> Result<(), Fault> {
        let count = bytes.div_ceil(piece);
        let range = |at: usize| at * piece..bytes.min((at + 1) * piece);
        for next in 0..count + LANES - 1 {
            if next < count {
                let lane = &mut self.lanes[next % LANES];
                let transfer = fill(lane, range(next));
                lane.start(&self.monitor.api, transfer)?;
            }
            if let Some(first) = (next + 1).checked_sub(LANES).filter(|first| *first < count) {
                let lane = &mut self.lanes[first % LANES];
                self.monitor.wait(lane, awaited)?;
                take(lane.received(), range(first));
            }
        }
        Ok(())
    }

    /// The bytes of a piece of which every rank has its own.
    fn share(&self) -> usize {
        (PIECE / self.size()).max(1).next_multiple_of(LINE)
    }

    /// Runs a round unless there was a fault already; its own fault is kept.
    fn attempt(&mut self, body: impl FnOnce(&mut Self) -> Result<(), Fault>) -> Result<(), Fault> {
        match &self.fault {
            Some(fault) => Err(fault.clone()),
            None => body(self).map_err(|fault| self.keep(fault)),
        }
    }

    /// Keeps a fault, and announces it if the others do not know it.
    fn keep(&mut self, fault: Fault) -> Fault {
        let is_own = matches!(fault, Fault::Timeout { .. } | Fault::System(_));
        if is_own && !self.monitor.control.has_heard(&fault) {
            self.monitor.announce(Message::Fault(fault.clone()));
        }
        self.fault.insert(fault).clone()
    }
}

impl<H: Handle> Transport for Link<H> {
    fn rank(&self) -> usize {
        self.monitor.api.rank
    }

    fn size(&self) -> usize {
        self.monitor.api.size
    }

    fn all_gather(&mut self, round: &Round, mine: &[u8], all: &mut [u8]) -> Result<(), Fault> {
        assert_eq!(all.len(), mine.len() * self.size(), "every rank gives equally many bytes");
        self.attempt(|link| link.gather(round, mine, all))
    }

    fn all_to_all(&mut self, round: &Round, send: &[u8], received: &mut [u8]) -> Result<(), Fault> {
        assert_eq!(send.len(), received.len(), "parts are equal");
        assert!(send.len().is_multiple_of(self.size()), "every rank gets a part");
        self.attempt(|link| link.exchange_parts(round, send, received))
    }

    fn broadcast(&mut self, round: &Round, bytes: &mut [u8], root: usize) -> Result<(), Fault> {
        assert!(root < self.size(), "the root is a rank");
        self.attempt(|link| link.spread(round, bytes, root))
    }

    fn send(&mut self, round: &Round, bytes: &[u8], to: usize) -> Result<(), Fault> {
        assert!(to < self.size() && to != self.rank(), "another rank receives");
        self.attempt(|link| link.send_to(round, bytes, to))
    }

    fn receive(&mut self, round: &Round, bytes: &mut [u8], from: usize) -> Result<(), Fault> {
        assert!(from < self.size() && from != self.rank(), "another rank sends");
        self.attempt(|link| link.receive_from(round, bytes, from))
    }

    fn steps(&self) -> Vec<u64> {
        self.steps.clone()
    }

    fn fail(&mut self, text: &str) {
        if self.fault.is_none() {
            let fault = Fault::Failed { rank: self.rank(), text: text.into() };
            self.monitor.announce(Message::Fault(fault.clone()));
            self.fault = Some(fault);
        }
    }

    fn set_timeout(&mut self, timeout: Duration) {
        self.monitor.timeout = timeout;
    }

    fn idle(&mut self) -> Result<(), Fault> {
        // What was announced may still be on its way.
        self.monitor.control.push(&self.monitor.api);
        self.attempt(|link| link.monitor.listen(false))
    }
}

impl<H: Handle> Drop for Link<H> {
    fn drop(&mut self) {
        if self.fault.is_none() {
            self.monitor.announce(Message::Left);
        }
    }
}
