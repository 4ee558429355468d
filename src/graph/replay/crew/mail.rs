//! Mail from a worker to a part: completed tasks with successors in that part.

use super::tasks::NONE;
use crate::graph::replay::sync::Ordering::{Acquire, Relaxed, Release};
use crate::graph::replay::sync::{Apart, AtomicU32};

/// A wait-free list that one thread appends to while another one reads it. Each entry shows by its
/// value whether it has been written, so the two threads share no end index.
pub(super) struct Mail {
    entries: Box<[AtomicU32]>,
    /// How many were written; used by the sender alone.
    sent: Apart<AtomicU32>,
    /// How many were read; used by the receiver alone.
    received: Apart<AtomicU32>,
}

impl Mail {
    /// Room for `most` entries between two calls of `clear`.
    pub(super) fn new(most: usize) -> Mail {
        let count = || Apart(AtomicU32::new(0));
        let entries = (0..most).map(|_| AtomicU32::new(NONE)).collect();
        Mail { entries, sent: count(), received: count() }
    }

    /// Empties the list.
    pub(super) fn clear(&mut self) {
        let written = self.entries.iter().take(self.sent.0.load(Relaxed) as usize);
        written.for_each(|entry| entry.store(NONE, Relaxed));
        [&self.sent, &self.received].iter().for_each(|count| count.0.store(0, Relaxed));
    }

    /// Appends an entry and publishes everything that its sender wrote before.
    #[inline(always)]
    pub(super) fn send(&self, seat: u32) {
        let sent = self.sent.0.load(Relaxed);
        self.sent.0.store(sent + 1, Relaxed);
        self.entries[sent as usize].store(seat, Release);
    }

    /// Passes the unread entries to `take`.
    #[inline(always)]
    pub(super) fn receive(&self, mut take: impl FnMut(u32)) {
        let first = self.received.0.load(Relaxed);
        let mut next = first;
        for entry in &self.entries[first as usize..] {
            let seat = entry.load(Acquire);
            if seat == NONE {
                break;
            }
            take(seat);
            next += 1;
        }
        if next > first {
            self.received.0.store(next, Relaxed);
        }
    }
}
