//! The kinds of rounds: small ones are done when the ranks have agreed, as their bytes travel with
//! the records; larger ones follow in pieces.

use std::ops::Range;

use super::{Link, PIECE};
use crate::comm::mpi::api::Handle;
use crate::comm::mpi::lane::{Channel, Lane, Transfer};
use crate::comm::mpi::message::Message;
use crate::comm::mpi::record::{self, INLINE, Way};
use crate::comm::{Fault, Round, Transport};

impl<H: Handle> Link<H> {
    /// Every rank's bytes reach all.
    pub(super) fn gather(
        &mut self,
        round: &Round,
        mine: &[u8],
        all: &mut [u8],
    ) -> Result<(), Fault> {
        let bytes = mine.len();
        self.agree(round, Way::AllGather, bytes, mine)?;
        if bytes <= INLINE {
            let places = all.chunks_exact_mut(bytes.max(1));
            places.zip(self.payloads()).for_each(|(to, from)| to.copy_from_slice(&from[..bytes]));
            return Ok(());
        }
        let fill = |lane: &mut Lane<H>, piece: Range<usize>| {
            lane.fill(piece.len()).copy_from_slice(&mine[piece]);
            Transfer::AllGather
        };
        self.in_pieces(None, (bytes, self.share()), fill, |received, piece| {
            place(all, bytes, &piece, received);
        })
    }

    /// Each rank's part for another reaches it.
    pub(super) fn exchange_parts(
        &mut self,
        round: &Round,
        send: &[u8],
        received: &mut [u8],
    ) -> Result<(), Fault> {
        let (size, rank) = (self.size(), self.rank());
        let part = send.len() / size;
        self.agree(round, Way::AllToAll, send.len(), send)?;
        if send.len() <= INLINE {
            let places = received.chunks_exact_mut(part.max(1)).zip(self.payloads());
            places.for_each(|(to, from)| to.copy_from_slice(&from[rank * part..][..part]));
            return Ok(());
        }
        let fill = |lane: &mut Lane<H>, piece: Range<usize>| {
            let places = lane.fill(piece.len() * size).chunks_exact_mut(piece.len());
            for (to, from) in places.zip(send.chunks_exact(part)) {
                to.copy_from_slice(&from[piece.clone()]);
            }
            Transfer::AllToAll
        };
        self.in_pieces(None, (part, self.share()), fill, |came, piece| {
            place(received, part, &piece, came);
        })
    }

    /// The root's bytes reach all.
    pub(super) fn spread(
        &mut self,
        round: &Round,
        bytes: &mut [u8],
        root: usize,
    ) -> Result<(), Fault> {
        let (is_root, length) = (self.rank() == root, bytes.len());
        self.agree(round, Way::Broadcast { root }, length, if is_root { bytes } else { &[] })?;
        if length <= INLINE {
            let payload = self.payloads().nth(root).expect("the root is a rank");
            bytes.copy_from_slice(&payload[..length]);
            return Ok(());
        }
        let to_all = |piece: &Range<usize>| Transfer::Broadcast { bytes: piece.len(), root };
        if is_root {
            let fill = |lane: &mut Lane<H>, piece: Range<usize>| {
                lane.fill(piece.len()).copy_from_slice(&bytes[piece.clone()]);
                to_all(&piece)
            };
            return self.in_pieces(None, (length, PIECE), fill, |_, _| {});
        }
        let fill = |_: &mut Lane<H>, piece| to_all(&piece);
        self.in_pieces(None, (length, PIECE), fill, |received, piece| {
            place(bytes, length, &piece, received);
        })
    }

    /// A record and bytes for one rank. Small ones are gone before it takes them.
    pub(super) fn send_to(&mut self, round: &Round, bytes: &[u8], to: usize) -> Result<(), Fault> {
        self.introduce(round, Way::Pair, bytes.len(), bytes);
        let send = Transfer::Send { to, on: Channel::Data };
        self.transfer(send, Some(to))?;
        if bytes.len() <= INLINE {
            return Ok(());
        }
        let fill = |lane: &mut Lane<H>, piece: Range<usize>| {
            lane.fill(piece.len()).copy_from_slice(&bytes[piece]);
            send
        };
        self.in_pieces(Some(to), (bytes.len(), PIECE), fill, |_, _| {})
    }

    /// The other half of [`send_to`](Self::send_to).
    pub(super) fn receive_from(
        &mut self,
        round: &Round,
        bytes: &mut [u8],
        from: usize,
    ) -> Result<(), Fault> {
        let receive = |bytes| Transfer::Receive { bytes, from: Some(from), on: Channel::Data };
        self.transfer(receive(record::BYTES), Some(from))?;
        let mut ours = [0; record::BYTES];
        record::write(&mut ours, round, Way::Pair, bytes.len());
        let theirs = &self.lanes[0].received()[..record::BYTES];
        if let Err(fault) = record::compare(&ours, theirs, from) {
            // The sender has not seen our record, and the others know nothing of either.
            self.monitor.announce(Message::Fault(fault.clone()));
            return Err(fault);
        }
        if bytes.len() <= INLINE {
            bytes.copy_from_slice(&record::payload(theirs)[..bytes.len()]);
            return Ok(());
        }
        let fill = |_: &mut Lane<H>, piece: Range<usize>| receive(piece.len());
        let length = bytes.len();
        self.in_pieces(Some(from), (length, PIECE), fill, |received, piece| {
            place(bytes, length, &piece, received);
        })
    }
}

/// Copies what has been received for a piece of every part to its places in the parts.
fn place(parts: &mut [u8], part: usize, piece: &Range<usize>, received: &[u8]) {
    for (to, from) in parts.chunks_exact_mut(part).zip(received.chunks_exact(piece.len())) {
        to[piece.clone()].copy_from_slice(from);
    }
}
