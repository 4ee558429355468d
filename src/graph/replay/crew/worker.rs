//! A worker: one of the threads that run tasks.

mod idle;

use std::ops::Range;
use std::sync::MutexGuard;

use super::super::patience::Patience;
use super::super::sync::Ordering::{Acquire, Relaxed, Release};
use super::{AtomicU32, Crew, Late, NONE};

/// Flags a mail entry that names a task, for its successors in its own part. Other entries name a
/// group of successors.
const NEAR: u32 = 1 << 31;

/// See the module's documentation.
pub(in super::super) struct Worker<'a> {
    crew: &'a Crew,
    number: usize,
    /// The seats of its part that it has not reached.
    rest: Range<u32>,
    /// How many of the tasks that it skipped are not ready.
    skipped: u32,
    /// Skipped tasks that have become ready.
    late: MutexGuard<'a, Late>,
    /// The current task, and the last one of its chain.
    seat: u32,
    last: u32,
    /// Seats of one part that have been run but not reported to their successors.
    untold: Range<u32>,
    /// Whether the current task runs out of turn: it was skipped before, or stolen.
    is_alone: bool,
    /// How many sinks it has run and not subtracted from `left`.
    done: usize,
    /// The number of requests that it has seen.
    heard: u32,
    patience: Patience,
}

impl<'a> Worker<'a> {
    pub(super) fn new(crew: &'a Crew, number: usize, mut late: MutexGuard<'a, Late>) -> Self {
        late.clear();
        Worker {
            crew,
            number,
            rest: 0..0,
            skipped: 0,
            late,
            seat: NONE,
            last: NONE,
            untold: 0..0,
            is_alone: false,
            done: 0,
            heard: crew.requests.0.load(Relaxed),
            patience: Patience::new(crew.latest[crew.segment]),
        }
    }

    /// Runs tasks until all are done. A task that `may` rejects is skipped with the rest of its
    /// chain; `may` is asked at the start of a chain, and after each interruption within it. If
    /// `run` unwinds, the current task counts as done, and this must be called again.
    pub(in super::super) fn work(&mut self, may: impl Fn(u32) -> bool, run: impl Fn(u32)) {
        let mut seat = match self.seat {
            NONE => self.begin(),
            done => self.next(done),
        };
        while seat != NONE {
            match may(self.crew.tasks.task(seat)) {
                true => self.run(seat, &run),
                false => self.seat = self.last,
            }
            seat = self.next(self.seat);
        }
    }

    /// Runs a task and the rest of its chain, until there is a request.
    #[inline(always)]
    fn run(&mut self, first: u32, run: &impl Fn(u32)) {
        let (crew, heard) = (self.crew, self.heard);
        for (seat, task) in (first..).zip(crew.tasks.tasks(first..self.last + 1)) {
            self.seat = seat;
            run(task);
            if crew.requests.0.load(Relaxed) != heard {
                break;
            }
        }
    }

    /// The current task.
    pub(in super::super) fn task(&self) -> u32 {
        self.crew.tasks.task(self.seat)
    }

    /// Claims its part; returns the first task to run.
    fn begin(&mut self) -> u32 {
        self.rest = self.crew.claim(self.number, self.number).unwrap_or_default();
        self.advance().unwrap_or_else(|| self.find())
    }

    /// The task to run after one that is done.
    #[inline(always)]
    fn next(&mut self, done: u32) -> u32 {
        if done < self.last {
            self.offer();
            return done + 1;
        }
        let is_asked = self.crew.requests.0.load(Relaxed) != self.heard;
        if is_asked || self.is_alone || self.crew.tasks.is_due(done) {
            self.tell();
        }
        if is_asked {
            self.offer();
        }
        match self.late.pop() {
            Some(seat) => self.alone(seat),
            None => {
                self.advance().or_else(|| self.tell_and_advance()).unwrap_or_else(|| self.find())
            }
        }
    }

    /// Reports completed tasks, and goes on with the next task if that makes it ready.
    #[inline(always)]
    fn tell_and_advance(&mut self) -> Option<u32> {
        self.tell();
        self.advance()
    }

    /// Goes on with a task out of turn.
    fn alone(&mut self, seat: u32) -> u32 {
        self.tell();
        self.last = self.crew.tasks.last(seat);
        self.untold = seat..self.last + 1;
        self.is_alone = true;
        seat
    }

    /// Goes on with the next task of its part if it is ready.
    #[inline(always)]
    fn advance(&mut self) -> Option<u32> {
        let seat = self.rest.start;
        if seat >= self.rest.end || self.crew.waits[seat as usize].load(Relaxed) != 0 {
            return None;
        }
        if self.untold.end != seat {
            self.tell();
            self.untold.start = seat;
        }
        self.last = self.crew.tasks.last(seat);
        self.untold.end = self.last + 1;
        self.is_alone = false;
        self.rest.start = self.last + 1;
        Some(seat)
    }

    /// Reports completed tasks to all their successors.
    #[inline(always)]
    fn tell(&mut self) {
        let (crew, end) = (self.crew, self.untold.end);
        let done = std::mem::replace(&mut self.untold, end..end);
        let near = crew.tasks.near(&done);
        if !near.is_empty() {
            let part = crew.tasks.part(done.start);
            match self.has(part) {
                true => self.arrive(near),
                false => crew.mail(self.number, part).send(NEAR | done.start),
            }
        }
        for group in crew.tasks.groups(&done) {
            let part = crew.tasks.part_of(group);
            match self.has(part) {
                true => self.arrive(crew.tasks.group(group)),
                false => crew.mail(self.number, part).send(group),
            }
        }
        self.done += crew.tasks.sinks(&done);
    }

    /// Whether it owns a part.
    #[inline(always)]
    fn has(&self, part: usize) -> bool {
        self.crew.owners[part].load(Relaxed) as usize == self.number
    }

    /// Lowers the counters of tasks of its own parts, one of whose predecessors has run.
    #[inline(always)]
    fn arrive(&mut self, group: &[u32]) {
        let (counters, rest) = (&*self.crew.waits, self.rest.clone());
        for &seat in group {
            let waits = &counters[seat as usize];
            if rest.contains(&seat) {
                // Readiness is tested when its turn comes: a branch here would be unpredictable.
                waits.store(waits.load(Relaxed) - 1, Relaxed);
            } else {
                self.arrive_late(seat, waits);
            }
        }
    }

    /// The same for a task that it skipped.
    fn arrive_late(&mut self, seat: u32, waits: &AtomicU32) {
        let left = waits.load(Relaxed) - 1;
        waits.store(left, Relaxed);
        if left == 0 {
            self.late.push(seat);
            self.skipped -= 1;
        }
    }

    /// Reads the mail for its parts.
    fn receive(&mut self) {
        let (crew, workers) = (self.crew, self.crew.workers);
        for part in 0..workers {
            if self.has(part) {
                let from = (0..workers).map(|worker| crew.mail(worker, part));
                from.for_each(|mail| mail.receive(|entry| self.read(entry)));
            }
        }
    }

    #[inline(always)]
    fn read(&mut self, entry: u32) {
        let (tasks, seat) = (&self.crew.tasks, entry & !NEAR);
        match entry & NEAR {
            0 => self.arrive(tasks.group(entry)),
            _ => self.arrive(tasks.near(&(seat..tasks.last(seat) + 1))),
        }
    }
}
