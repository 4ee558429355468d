//! What all ranks do together, chunk by chunk.

use super::described::Description;
use super::segment::CHUNK;
use super::wait::Wanted;
use super::{Host, cut};
use crate::comm::{Fault, Transport};

impl Host {
    /// Every rank's bytes, in the order of the ranks.
    pub(super) fn gather(
        &self,
        this: Description,
        mine: &[u8],
        all: &mut [u8],
    ) -> Result<(), Fault> {
        for range in cut(mine.len(), CHUNK) {
            let ours = &mine[range.clone()];
            let number = self.meet(this, |slot| slot[..ours.len()].copy_from_slice(ours))?;
            for rank in 0..self.size() {
                let theirs = &self.shown(rank, number)[..range.len()];
                all[rank * mine.len()..][range.clone()].copy_from_slice(theirs);
            }
        }
        Ok(())
    }

    /// The parts of all ranks' bytes that are for this one.
    pub(super) fn exchange(
        &self,
        this: Description,
        send: &[u8],
        received: &mut [u8],
    ) -> Result<(), Fault> {
        let (each, part) = (send.len() / self.size(), self.segment.part());
        for range in cut(each, part) {
            let fill = |slot: &mut [u8]| {
                for to in 0..self.size() {
                    let bytes = &send[to * each..][range.clone()];
                    slot[to * part..][..bytes.len()].copy_from_slice(bytes);
                }
            };
            let number = self.meet(this, fill)?;
            for from in 0..self.size() {
                let bytes = &self.shown(from, number)[self.rank * part..][..range.len()];
                received[from * each..][range.clone()].copy_from_slice(bytes);
            }
        }
        Ok(())
    }

    /// The root's bytes.
    pub(super) fn spread(
        &self,
        this: Description,
        bytes: &mut [u8],
        root: usize,
    ) -> Result<(), Fault> {
        for range in cut(bytes.len(), CHUNK) {
            let bytes = &mut bytes[range];
            if root == self.rank {
                self.meet(this, |slot| slot[..bytes.len()].copy_from_slice(bytes))?;
            } else {
                let number = self.meet(this, |_| ())?;
                bytes.copy_from_slice(&self.shown(root, number)[..bytes.len()]);
            }
        }
        Ok(())
    }

    /// Publishes a chunk and waits for those of all others; the number of these chunks.
    fn meet(&self, this: Description, fill: impl FnOnce(&mut [u8])) -> Result<u32, Fault> {
        let own = self.segment.member(self.rank);
        let number = own.published.get().wrapping_add(1);
        // SAFETY: this rank has seen all others publish the number before, before which they have
        // read all they wanted of the one that was here.
        unsafe {
            fill(self.segment.slot_mut(self.rank, number));
            own.descriptions.set(number, this);
        }
        own.published.set(number);
        let agree = |rank| {
            // SAFETY: it is published, and the next but one waits for this rank's next.
            this.agree(rank, unsafe { self.segment.member(rank).descriptions.get(number) })
        };
        let signal = |rank| &self.segment.member(rank).published;
        let ranks = 0..self.size();
        self.wait(&Wanted { ranks, number, signal: &signal, agree: &agree })?;
        for (rank, step) in self.steps.iter().enumerate() {
            // SAFETY: as above.
            step.set(unsafe { self.segment.member(rank).descriptions.get(number) }.step);
        }
        Ok(number)
    }

    /// A rank's chunk of the number at which all have just met.
    fn shown(&self, rank: usize, number: u32) -> &[u8] {
        // SAFETY: it is published, and the next but one waits for this rank's next.
        unsafe { self.segment.slot(rank, number) }
    }
}
