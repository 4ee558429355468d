//! Which worker runs which task, and when: the synchronisation of parallel replay, independent of
//! what the tasks do.
//!
//! Tasks are assigned to parts in advance, one part per worker ([`Schedule::parts`]). Each task has
//! a counter of the predecessors that it still waits for, which only the owner of its part changes:
//! a counter then costs a load and a store, and counters of different workers rarely share a cache
//! line. After running tasks, a worker lowers the counters of their successors; for successors in
//! another part it sends mail to that part's owner, which reads it when it has nothing ready or is
//! asked for tasks.
//!
//! A worker runs its part in order; it skips tasks that are not ready and returns to them once they
//! are. A worker with nothing to run posts a request; the others check for requests between tasks
//! and offer their oldest ready task (receiver-initiated work sharing: Acar, Charguéraud and
//! Rainey, 2013). A part whose worker does not arrive in time is adopted by another one.
//!
//! A task whose only successor comes next in its part and waits for nothing else forms a chain with
//! it: the worker goes straight on to the successor without looking at counters. Each task is still
//! a separate call, and the worker checks for requests in between.
//!
//! [`Schedule::parts`]: crate::graph::Schedule::parts

use std::ops::Range;
use std::sync::Mutex;
use std::time::Duration;

use super::parallel::WAKING;
use super::sync::Ordering::{Acquire, Relaxed, Release};
use super::sync::{Apart, AtomicU32, AtomicUsize, set};
use crate::error::locked;
use crate::graph::Schedule;
use tasks::{NONE, Tasks};
use worker::Worker;

mod tasks;
mod worker;

/// Nanoseconds within which a worker of the team that is awake arrives: several times what starting a
/// region takes.
const LATE: u64 = 5_000;
/// The part of a segment's gain that is risked by waiting for a worker.
const PART_OF_GAIN: u64 = 4;

/// The shared state of the workers. All memory is allocated once.
pub(super) struct Crew {
    tasks: Tasks,
    segment: usize,
    workers: usize,
    /// By segment: how long a worker may take to arrive before it loses its part to an idle one.
    latest: Box<[Duration]>,
    /// By seat: how many predecessors each task still waits for; unused within chains.
    waits: Box<[AtomicU32]>,
    /// By part: the worker that owns it; NONE until it is claimed.
    owners: Box<[AtomicU32]>,
    /// By worker and part: tasks that the worker has run and that have successors in the part.
    mail: Box<[Mail]>,
    /// How many times workers have asked for tasks or were interrupted.
    requests: Apart<AtomicU32>,
    /// By worker: a ready task that others may take.
    offers: Box<[Apart<AtomicU32>]>,
    /// How many sinks (tasks without successors) have not been reported as done.
    left: Apart<AtomicUsize>,
    /// By worker: the tasks that it skipped and that have become ready.
    late: Box<[Apart<Mutex<Late>>]>,
}

impl Crew {
    pub(super) fn new(schedule: &Schedule) -> Crew {
        let Schedule { segments, gains, workers, .. } = schedule;
        let tasks = Tasks::new(schedule);
        let longest = segments.iter().map(|tasks| tasks.len()).max().unwrap_or(0);
        let most = Vec::from_iter((0..*workers).map(|part| tasks.most_mail(segments, part)));
        let mail = (0..*workers).flat_map(|_| most.iter().map(|&most| Mail::new(most)));
        let none = || AtomicU32::new(NONE);
        Crew {
            segment: 0,
            workers: *workers,
            latest: gains.iter().map(|&gain| latest(gain)).collect(),
            waits: tasks.predecessors.iter().map(|&count| AtomicU32::new(count)).collect(),
            owners: (0..*workers).map(|_| none()).collect(),
            mail: mail.collect(),
            requests: Apart(AtomicU32::new(0)),
            offers: (0..*workers).map(|_| Apart(none())).collect(),
            left: Apart(AtomicUsize::new(0)),
            late: (0..*workers).map(|_| Apart(Mutex::new(Late::new(longest)))).collect(),
            tasks,
        }
    }

    /// Starts on a segment. No worker may be running.
    pub(super) fn begin(&mut self, segment: usize, tasks: &Range<u32>) {
        self.segment = segment;
        for seats in self.tasks.counted(segment) {
            let seats = seats.start as usize..seats.end as usize;
            set(&mut self.waits[seats.clone()], &self.tasks.predecessors[seats]);
        }
        self.owners.iter().for_each(|owner| owner.store(NONE, Relaxed));
        self.mail.iter_mut().for_each(Mail::clear);
        self.left.0.store(self.tasks.sinks(tasks), Relaxed);
    }

    /// The worker of that number. Each number may have one worker at a time, which works on one
    /// segment.
    pub(super) fn worker(&self, number: usize) -> Worker<'_> {
        let late = locked(&self.late[number].0);
        Worker::new(self, number, late)
    }

    /// Makes every worker check for requests and failures before its next task.
    pub(super) fn interrupt(&self) {
        self.requests.0.fetch_add(1, Relaxed);
    }

    /// The mail from a worker to a part.
    #[inline(always)]
    fn mail(&self, worker: usize, part: usize) -> &Mail {
        &self.mail[worker * self.workers + part]
    }

    /// Gives a part to a worker if it has no owner; returns its seats.
    fn claim(&self, part: usize, worker: usize) -> Option<Range<u32>> {
        let owner = &self.owners[part];
        let is_free = owner.load(Relaxed) == NONE
            && owner.compare_exchange(NONE, worker as u32, Relaxed, Relaxed).is_ok();
        is_free.then(|| self.tasks.seats(self.segment, part))
    }

    /// Takes the task that a worker offers; NONE if there is none.
    fn take(&self, worker: usize) -> u32 {
        let offer = &self.offers[worker].0;
        if offer.load(Relaxed) == NONE { NONE } else { offer.swap(NONE, Acquire) }
    }
}

/// How long a worker may take to arrive, in a segment that gains so many nanoseconds: long enough
/// to wake up where that is worth it.
fn latest(gain: u64) -> Duration {
    Duration::from_nanos((gain / PART_OF_GAIN).clamp(LATE, WAKING))
}

/// A wait-free list that one thread appends to while another one reads it. Each entry shows by its
/// value whether it has been written, so the two threads share no end index.
struct Mail {
    entries: Box<[AtomicU32]>,
    /// How many were written; used by the sender alone.
    sent: Apart<AtomicU32>,
    /// How many were read; used by the receiver alone.
    received: Apart<AtomicU32>,
}

impl Mail {
    /// Room for `most` entries between two calls of `clear`.
    fn new(most: usize) -> Mail {
        let count = || Apart(AtomicU32::new(0));
        let entries = (0..most).map(|_| AtomicU32::new(NONE)).collect();
        Mail { entries, sent: count(), received: count() }
    }

    /// Empties the list.
    fn clear(&mut self) {
        let written = self.entries.iter().take(self.sent.0.load(Relaxed) as usize);
        written.for_each(|entry| entry.store(NONE, Relaxed));
        [&self.sent, &self.received].iter().for_each(|count| count.0.store(0, Relaxed));
    }

    /// Appends an entry and publishes everything that its sender wrote before.
    #[inline(always)]
    fn send(&self, seat: u32) {
        let sent = self.sent.0.load(Relaxed);
        self.sent.0.store(sent + 1, Relaxed);
        self.entries[sent as usize].store(seat, Release);
    }

    /// Passes the unread entries to `take`.
    #[inline(always)]
    fn receive(&self, mut take: impl FnMut(u32)) {
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

/// The tasks that a worker skipped, in the order in which they have become ready since.
struct Late {
    tasks: Box<[u32]>,
    first: usize,
    end: usize,
}

impl Late {
    /// Room for `most` tasks between two calls of `clear`.
    fn new(most: usize) -> Late {
        Late { tasks: vec![0; most].into(), first: 0, end: 0 }
    }

    fn clear(&mut self) {
        (self.first, self.end) = (0, 0);
    }

    fn push(&mut self, seat: u32) {
        self.tasks[self.end] = seat;
        self.end += 1;
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<u32> {
        if self.first == self.end {
            return None;
        }
        self.first += 1;
        Some(self.tasks[self.first - 1])
    }
}

#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(loom)))]
mod tests;
