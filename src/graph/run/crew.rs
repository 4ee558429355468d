//! Who runs which task when: the synchronisation of parallel replay, whatever the tasks are.
//!
//! Tasks are dealt out to parts beforehand, one a worker ([`Schedule::parts`]). Each task has a
//! counter of the tasks that it still waits for, which only the worker changes that has its part:
//! so a counter costs a load and a store, and what two workers count shares no cache lines. Whoever
//! has run tasks lowers the counters of their successors, and tells those in another part to its
//! worker by mail, which is read when there is nothing else to do. A worker goes straight on with
//! the next task of its part if that is ready, past it if not, and back to it when it hears that it
//! has become so. Who has nothing to run asks; the others look for that between tasks and offer
//! their oldest ready one (receiver-initiated work sharing: Acar, Charguéraud and Rainey, 2013).
//! A part whose worker does not come is adopted by another one.
//!
//! Where a task's only successor waits for nothing else and is the next in its part, whoever ends
//! the one goes on with the other and no counter is looked at. Still each is called by itself,
//! and between the two the worker looks whether it is asked for tasks.
//!
//! [`Schedule::parts`]: crate::graph::Schedule::parts

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::sync::Ordering::{Acquire, Relaxed};
use super::sync::{Apart, AtomicU32, AtomicUsize, set};
use crate::graph::Schedule;
use late::Late;
use mail::Mail;
use tasks::{NONE, Tasks};
use worker::Worker;

mod late;
mod mail;
mod tasks;
mod worker;

/// Workers on segments of tasks. All memory is made once.
pub(super) struct Crew {
    tasks: Tasks,
    segment: usize,
    workers: usize,
    /// By seat: how many tasks each still waits for. Within chains nobody looks.
    waits: Box<[AtomicU32]>,
    /// By part: the worker that has it; NONE as long as nobody does.
    owners: Box<[AtomicU32]>,
    /// By worker and part: which tasks the worker has run.
    mail: Box<[Mail]>,
    /// How many times workers have asked for tasks, or were interrupted.
    requests: Apart<AtomicU32>,
    /// By worker: a ready task that others may take.
    offers: Box<[Apart<AtomicU32>]>,
    /// How many of the tasks that nobody waits for are not reported as done.
    left: Apart<AtomicUsize>,
    /// By worker: its ready tasks that it has gone past.
    late: Box<[Apart<Mutex<Late>>]>,
}

impl Crew {
    pub(super) fn new(schedule: &Schedule) -> Crew {
        let Schedule { segments, workers, .. } = schedule;
        let tasks = Tasks::new(schedule);
        let longest = segments.iter().map(|tasks| tasks.len()).max().unwrap_or(0);
        let most = Vec::from_iter((0..*workers).map(|part| tasks.most_mail(segments, part)));
        let mail = (0..*workers).flat_map(|_| most.iter().map(|&most| Mail::new(most)));
        let none = || AtomicU32::new(NONE);
        Crew {
            segment: 0,
            workers: *workers,
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

    /// Makes a segment the one that is worked on. None may be worked on meanwhile.
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

    /// A worker, which works once. There is one of each number.
    pub(super) fn worker(&self, number: usize) -> Worker<'_> {
        let late = self.late[number].0.lock().unwrap_or_else(PoisonError::into_inner);
        Worker::new(self, number, late)
    }

    /// Has all workers look up from what they do before the next task.
    pub(super) fn interrupt(&self) {
        self.requests.0.fetch_add(1, Relaxed);
    }

    /// The mail from a worker to a part.
    #[inline(always)]
    fn mail(&self, worker: usize, part: usize) -> &Mail {
        &self.mail[worker * self.workers + part]
    }

    /// Gives a part to a worker if nobody has it; then its seats.
    fn claim(&self, part: usize, worker: usize) -> Option<Range<u32>> {
        let owner = &self.owners[part];
        let is_free = owner.load(Relaxed) == NONE
            && owner.compare_exchange(NONE, worker as u32, Relaxed, Relaxed).is_ok();
        is_free.then(|| self.tasks.seats(self.segment, part))
    }

    /// Takes the task that a worker offers; NONE if it offers none.
    fn take(&self, worker: usize) -> u32 {
        let offer = &self.offers[worker].0;
        if offer.load(Relaxed) == NONE { NONE } else { offer.swap(NONE, Acquire) }
    }
}

#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(loom)))]
mod tests;
