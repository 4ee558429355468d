//! What two ranks do, part by part.

use super::described::Description;
use super::wait::Wanted;
use super::{Host, cut};
use crate::comm::Fault;

impl Host {
    /// Writes bytes for another rank. Returns when all are written, of which two parts at most are
    /// still to be read.
    pub(super) fn give(&self, this: Description, bytes: &[u8], to: usize) -> Result<(), Fault> {
        let ring = self.segment.ring(self.rank, to);
        for range in cut(bytes.len(), self.segment.part()) {
            let number = ring.sent.get().wrapping_add(1);
            let (signal, agree) = (|_| &ring.taken, |_| Ok(()));
            let (ranks, free) = (to..to + 1, number.wrapping_sub(2));
            self.wait(&Wanted { ranks, number: free, signal: &signal, agree: &agree })?;
            // SAFETY: the receiver has read the number that was here.
            unsafe {
                let slot = self.segment.pair_slot_mut(self.rank, to, number);
                slot[..range.len()].copy_from_slice(&bytes[range]);
                ring.descriptions.set(number, this);
            }
            ring.sent.set(number);
        }
        Ok(())
    }

    /// Reads bytes of another rank.
    pub(super) fn take(
        &self,
        this: Description,
        bytes: &mut [u8],
        from: usize,
    ) -> Result<(), Fault> {
        let ring = self.segment.ring(from, self.rank);
        for range in cut(bytes.len(), self.segment.part()) {
            let number = ring.taken.get().wrapping_add(1);
            // SAFETY: it is sent, and not yet taken.
            let agree = |rank| this.agree(rank, unsafe { ring.descriptions.get(number) });
            let (ranks, signal) = (from..from + 1, |_| &ring.sent);
            self.wait(&Wanted { ranks, number, signal: &signal, agree: &agree })?;
            // SAFETY: it is sent, and not yet taken.
            let slot = unsafe { self.segment.pair_slot(from, self.rank, number) };
            let bytes = &mut bytes[range];
            bytes.copy_from_slice(&slot[..bytes.len()]);
            ring.taken.set(number);
        }
        Ok(())
    }
}
