//! Who runs which task when: the synchronisation of parallel replay, whatever the tasks are.
//!
//! Each task has a counter of the tasks that it still waits for. The worker that ends a task
//! lowers those of its successors, and goes straight on with the lowest-numbered one that has
//! become ready. Others that have it keeps to itself, the next one first, but for the oldest,
//! which it offers to idle workers in a few slots (private deques: Acar, Chargueraud and Rainey,
//! 2013). So as long as nobody is idle, workers meet at counters only.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::patience::Patience;
use super::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use super::sync::{Apart, AtomicU32, AtomicUsize, set};
use crate::graph::{Csr, Edges};

/// No task.
const NONE: u32 = u32::MAX;
/// Into how many pieces per worker the tasks that wait for nothing are cut.
const PIECES: usize = 4;

/// The tasks that wait for a task.
struct Link {
    /// The lowest-numbered one, or NONE. It stands here since what runs next follows from it.
    first: u32,
    /// Where the others begin; they end where those of the next task begin.
    others: u32,
}

/// Workers on segments of tasks. All memory is made once.
pub(super) struct Crew {
    /// By task: which tasks of its segment wait for it; one more at the end.
    links: Box<[Link]>,
    /// The successors that are not the first.
    others: Vec<u32>,
    /// How many tasks of the segment's each task waits for, at the beginning.
    predecessors: Vec<u32>,
    /// How many it still waits for.
    waits: Box<[AtomicU32]>,
    /// The tasks that wait for nothing, segment by segment.
    roots: Csr<u32>,
    segment: usize,
    /// How many of the segment's roots are taken.
    taken: Apart<AtomicUsize>,
    /// How many of the segment's tasks nobody has reported as done.
    left: Apart<AtomicUsize>,
    /// By worker: ready tasks that others may take.
    offers: Box<[Box<[Apart<AtomicU32>]>]>,
    /// By worker: its other ready tasks, the oldest first.
    ready: Box<[Apart<Mutex<VecDeque<u32>>>]>,
}

impl Crew {
    /// `edges` are the tasks that must have run before each task, all in its own segment.
    pub(super) fn new(edges: &Edges, segments: &[Range<u32>], workers: usize) -> Crew {
        let (links, others) = links(edges);
        let longest = segments.iter().map(|tasks| tasks.len()).max().unwrap_or(0);
        let offers = || (1..workers).map(|_| Apart(AtomicU32::new(NONE))).collect();
        let ready = || Apart(Mutex::new(VecDeque::with_capacity(longest)));
        let mut roots = Csr::with_capacity(segments.len(), 0);
        for tasks in segments {
            let is_root = |&task: &u32| edges.row(task as usize).is_empty();
            tasks.clone().filter(is_root).for_each(|task| roots.push(task));
            roots.end_row();
        }
        Crew {
            links,
            others,
            predecessors: edges.iter().map(|row| row.len() as u32).collect(),
            waits: edges.iter().map(|_| AtomicU32::new(0)).collect(),
            roots,
            segment: 0,
            taken: Apart(AtomicUsize::new(0)),
            left: Apart(AtomicUsize::new(0)),
            offers: (0..workers).map(|_| offers()).collect(),
            ready: (0..workers).map(|_| ready()).collect(),
        }
    }

    /// Makes a segment the one that is worked on. None may be worked on meanwhile.
    pub(super) fn begin(&mut self, segment: usize, tasks: &Range<u32>) {
        self.segment = segment;
        let all = tasks.start as usize..tasks.end as usize;
        set(&mut self.waits[all.clone()], &self.predecessors[all.clone()]);
        self.taken.0.store(0, Relaxed);
        self.left.0.store(all.len(), Relaxed);
    }

    /// A worker, which works once. There is one of each number.
    pub(super) fn worker(&self, number: usize) -> Worker<'_> {
        let ready = self.ready[number].0.lock().unwrap_or_else(PoisonError::into_inner);
        Worker { crew: self, number, ready, task: NONE, done: 0, patience: Patience::new() }
    }

    /// Notes that one of the tasks that a task waits for has run. Says whether it was the last.
    fn arrive(&self, task: u32) -> bool {
        let waits = &self.waits[task as usize];
        // Nobody else can lower a counter that is 1.
        waits.load(Acquire) == 1 || waits.fetch_sub(1, AcqRel) == 1
    }

    /// Takes a task that a worker offers; NONE if it offers none.
    fn take(&self, number: usize) -> u32 {
        let offers = self.offers[number].iter().filter(|offer| offer.0.load(Relaxed) != NONE);
        let mut taken = offers.map(|offer| offer.0.swap(NONE, Acquire));
        taken.find(|&task| task != NONE).unwrap_or(NONE)
    }
}

/// The successors of each task.
fn links(edges: &Edges) -> (Box<[Link]>, Vec<u32>) {
    let pairs = || {
        let rows = edges.iter().zip(0..);
        rows.flat_map(|(row, to)| row.iter().map(move |&from| (from as usize, to)))
    };
    let successors = Csr::sorted(edges.rows(), pairs);
    let mut others = Vec::with_capacity(successors.items().len());
    let link = |row: &[u32]| {
        let (first, rest) = row.split_first().map_or((NONE, row), |(&first, rest)| (first, rest));
        let link = Link { first, others: others.len() as u32 };
        others.extend(rest);
        link
    };
    let none: &[u32] = &[];
    let links = successors.iter().chain([none]).map(link).collect();
    (links, others)
}

/// One of the threads that run tasks.
pub(super) struct Worker<'a> {
    crew: &'a Crew,
    number: usize,
    ready: MutexGuard<'a, VecDeque<u32>>,
    /// What it has in hand.
    task: u32,
    /// How many tasks it has run but not reported.
    done: usize,
    patience: Patience,
}

impl Worker<'_> {
    /// Runs tasks until all are done. Where `run` unwinds, the task in hand counts as done, and
    /// this is to be called again.
    pub(super) fn work(&mut self, run: impl Fn(u32)) {
        let mut task = if self.task == NONE { self.find() } else { self.next(self.task) };
        while task != NONE {
            self.task = task;
            run(task);
            task = self.next(task);
        }
    }

    /// The task in hand.
    pub(super) fn task(&self) -> u32 {
        self.task
    }

    /// What to run behind a task that is done.
    #[inline]
    fn next(&mut self, done: u32) -> u32 {
        self.done += 1;
        let (crew, done) = (self.crew, done as usize);
        let (first, others) = (crew.links[done].first, crew.links[done].others as usize);
        for &other in crew.others[others..crew.links[done + 1].others as usize].iter().rev() {
            if crew.arrive(other) {
                self.ready.push_back(other);
            }
        }
        let next = match first != NONE && crew.arrive(first) {
            true => first,
            false => self.ready.pop_back().unwrap_or_else(|| self.find()),
        };
        if !self.ready.is_empty() {
            self.offer();
        }
        next
    }

    /// Offers the oldest ready tasks where slots are empty.
    fn offer(&mut self) {
        let offers = self.crew.offers[self.number].iter();
        for offer in offers.filter(|offer| offer.0.load(Relaxed) == NONE) {
            let Some(oldest) = self.ready.pop_front() else { return };
            offer.0.store(oldest, Release);
        }
    }

    /// Finds a task where it has no ready one itself; NONE when all are done.
    #[cold]
    fn find(&mut self) -> u32 {
        let own = self.crew.take(self.number);
        if own != NONE {
            return own;
        }
        self.take_roots();
        self.ready.pop_back().unwrap_or_else(|| self.steal())
    }

    /// Takes a piece of the tasks that wait for nothing.
    fn take_roots(&mut self) {
        let (crew, workers) = (self.crew, self.crew.offers.len());
        let roots = crew.roots.row(crew.segment);
        if crew.taken.0.load(Relaxed) >= roots.len() {
            return;
        }
        let piece = roots.len().div_ceil(PIECES * workers);
        let first = crew.taken.0.fetch_add(piece, Relaxed).min(roots.len());
        let end = (first + piece).min(roots.len());
        self.ready.extend(roots[first..end].iter().rev());
    }

    /// Waits for a task that another worker offers; NONE when all are done.
    fn steal(&mut self) -> u32 {
        let (crew, workers) = (self.crew, self.crew.offers.len());
        self.patience.begin();
        // Whoever waits has reported all that it has done, so the count ends at zero.
        crew.left.0.fetch_sub(std::mem::take(&mut self.done), Release);
        while crew.left.0.load(Acquire) != 0 {
            if self.patience.is_over() {
                let others = (1..workers).map(|k| crew.take((self.number + k) % workers));
                if let Some(task) = others.into_iter().find(|&task| task != NONE) {
                    self.patience.end();
                    return task;
                }
            }
            self.patience.wait();
        }
        NONE
    }
}

#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(loom)))]
mod tests;
