//! Parallel replay: each segment of narrow nodes runs in one parallel region of the team. Between
//! segments, nodes that use the whole team, or are too few to be worth a region, run in recorded
//! order.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use super::Stopped;
use super::binding::Binding;
use super::crew::Crew;
use crate::device::{ending, team};
use crate::error::{Error, locked};
use crate::graph::Schedule;

/// About how many nanoseconds it takes a worker to come that sleeps: a segment that gains less is
/// not shared with it.
pub(super) const WAKING: u64 = 100_000;

/// See the module's documentation.
pub(super) struct ParallelRun {
    segments: Vec<Range<u32>>,
    /// By segment: whether it gains less than that.
    brief: Vec<bool>,
    workers: usize,
    crew: Mutex<Crew>,
}

impl ParallelRun {
    pub(super) fn new(schedule: &Schedule) -> ParallelRun {
        let crew = Mutex::new(Crew::new(schedule));
        let brief = schedule.gains.iter().map(|&gain| gain < WAKING).collect();
        let segments = schedule.segments.clone();
        ParallelRun { segments, brief, workers: schedule.workers, crew }
    }

    /// Runs nodes, up to the first one that fails.
    ///
    /// # Safety
    /// As [`super::Bound::run_from`].
    pub(super) unsafe fn run(&self, binding: &Binding, nodes: Range<usize>) -> Result<(), Stopped> {
        let mut crew = locked(&self.crew);
        let mut next = nodes.start;
        let begin = self.segments.partition_point(|segment| (segment.start as usize) < next);
        for (segment, tasks) in self.segments.iter().enumerate().skip(begin) {
            let (first, end) = (tasks.start as usize, tasks.end as usize);
            if end > nodes.end {
                break;
            }
            if self.brief[segment] && team::sleeps() {
                continue; // its nodes run one after the other
            }
            crew.begin(segment, tasks);
            // SAFETY: by the caller's promise, and because the nodes before have run.
            unsafe {
                binding.run_all::<false>(next..first)?;
                self.run_segment(binding, &crew, first..end)?;
            }
            next = end;
        }
        // SAFETY: as above.
        unsafe { binding.run_all::<false>(next..nodes.end) }
    }

    /// Runs the nodes of the segment on which the crew has begun.
    ///
    /// # Safety
    /// As [`super::Bound::run_from`].
    unsafe fn run_segment(
        &self,
        binding: &Binding,
        crew: &Crew,
        nodes: Range<usize>,
    ) -> Result<(), Stopped> {
        let (steps, failure) = (binding.steps(), Failure::default());
        let fail = |node: u32, error: Error| {
            failure.note(node as usize, error);
            crew.interrupt();
        };
        let may = |node: u32| (node as usize) < failure.node.load(Relaxed);
        let run = |node: u32| {
            // SAFETY: by the caller's promise; the crew keeps the order that the schedule
            // prescribes for nodes that touch the same memory.
            let done = ending::check().and_then(|()| unsafe { binding.run(&steps[node as usize]) });
            done.unwrap_or_else(|error| fail(node, error));
        };
        let work = |number: usize| {
            let mut worker = crew.worker(number);
            while let Err(panic) = catch_unwind(AssertUnwindSafe(|| worker.work(may, run))) {
                fail(worker.task(), Error::panic("", &*panic));
            }
        };
        team::parallel(self.workers, &work)
            .unwrap_or_else(|error| failure.note(nodes.start, error));
        failure.first().map_or(Ok(()), |(node, error)| {
            Err(Stopped { end: nodes.end, ..binding.stopped(node, error) })
        })
    }
}

/// The first node of a segment that has failed. Nodes after it, which include all that depend on
/// it, are skipped from then on; nodes before it still run, since one of them may fail too and the
/// first failure is the one that is reported.
struct Failure {
    /// The first node known to have failed.
    node: AtomicUsize,
    error: Mutex<Option<(usize, Error)>>,
}

impl Default for Failure {
    fn default() -> Self {
        Failure { node: AtomicUsize::new(usize::MAX), error: Mutex::new(None) }
    }
}

impl Failure {
    #[cold]
    fn note(&self, node: usize, error: Error) {
        self.node.fetch_min(node, Relaxed);
        let mut known = locked(&self.error);
        if known.as_ref().is_none_or(|(other, _)| node < *other) {
            *known = Some((node, error));
        }
    }

    fn first(self) -> Option<(usize, Error)> {
        self.error.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}
