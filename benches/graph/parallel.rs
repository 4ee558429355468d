//! Task graphs on one and two threads, compared with a bare loop on as many: it calls functions and
//! decrements the counters of their successors, and each thread is given half of the tasks in
//! advance.

use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering::AcqRel};
use std::time::Duration;

use singa_rs::device::team;
use singa_rs::graph::{Bound, Csr, Graph, Parallel};

use crate::measure::{Pair, bind, least, pairs, run, timed};
use crate::tasks::{Rows, Tasks, WORKLOADS, Work};

/// The number of threads.
const THREADS: usize = 2;
/// The number of tasks of each workload.
const COUNT: usize = 1 << 16;
/// The number of measurements of a ratio; the median counts.
const ROUNDS: usize = 11;

/// A workload in all the forms that are measured.
struct Subject {
    pairs: Vec<Pair>,
    successors: Csr<u32>,
    counters: Vec<AtomicU32>,
    serial: Bound,
    parallel: Bound,
    recording: Duration,
    analysis: Duration,
}

impl Subject {
    fn new(rows: &Rows, work: Work) -> Subject {
        let given = Tasks::new(rows, work);
        let mut tasks = None;
        let recording = timed(|| tasks = Some(given.record(rows)));
        let tasks = tasks.expect("it was recorded");
        let (queue, roles) = (|| tasks.queue.clone(), || tasks.roles.clone());
        let serial = Graph::new(queue(), roles(), &tasks.kernels).expect("a graph");
        let always = Parallel { least_gain: 0, ..Parallel::new(THREADS) };
        let given = (queue(), roles());
        let mut graph = None;
        let analysis =
            timed(|| graph = Graph::planned(given.0, given.1, &tasks.kernels, Some(always)).ok());
        let graph = graph.expect("a graph");
        let nodes = graph.ops().len();
        let shared: usize = graph.schedule().expect("one").segments.iter().map(|s| s.len()).sum();
        assert!(nodes == shared || nodes == 1, "all nodes run by all threads");
        let edges = rows.iter().zip(0..).flat_map(|(row, to)| row.iter().map(move |&f| (f, to)));
        let edges: Vec<(usize, u32)> = edges.map(|(from, to)| (from as usize, to)).collect();
        Subject {
            pairs: pairs(&serial),
            successors: Csr::sorted(nodes, || edges.iter().copied()),
            counters: (0..nodes).map(|_| AtomicU32::new(0)).collect(),
            serial: bind(&serial),
            parallel: bind(&graph),
            recording,
            analysis,
        }
    }

    /// The bare loop.
    fn bare(&self) {
        let half = |part: usize| {
            for task in team::share(self.pairs.len(), 1, THREADS, part) {
                let (function, context) = &self.pairs[task];
                function(context);
                for &next in self.successors.row(task) {
                    self.counters[next as usize].fetch_sub(1, AcqRel);
                }
            }
        };
        team::parallel(THREADS, &half).expect("no panic");
    }

    /// Seconds of the bare loop, of serial and of parallel replay, in turn.
    fn round(&self) -> [f64; 3] {
        let times = (200_000 / self.pairs.len()).clamp(2, 1000);
        let bare = least(times, || timed(|| black_box(self).bare()));
        let serial = least(times, || timed(|| run(black_box(&self.serial))));
        let parallel = least(times, || timed(|| run(black_box(&self.parallel))));
        [bare, serial, parallel].map(|time| time.as_secs_f64())
    }

    /// Nanoseconds per task, and the ratios of parallel replay to the bare loop and to serial
    /// replay; each is the median over the rounds.
    fn measure(&self) -> ([f64; 3], [f64; 2]) {
        let rounds: Vec<[f64; 3]> = (0..ROUNDS).map(|_| self.round()).collect();
        let middle = |of: &dyn Fn(&[f64; 3]) -> f64| {
            let mut found: Vec<f64> = rounds.iter().map(of).collect();
            found.sort_by(f64::total_cmp);
            found[ROUNDS / 2]
        };
        let each = 1e9 / self.pairs.len() as f64;
        let times = [0, 1, 2].map(|k| each * middle(&|round| round[k]));
        (times, [0, 1].map(|k| middle(&|round| round[2] / round[k])))
    }
}

/// All workloads at one size, empty and tiny.
pub fn tasks() {
    team::set_size(THREADS);
    println!(
        "ns a task: recorded, analysed | bare on {THREADS}, serial, parallel | parallel to both"
    );
    for (name, rows) in WORKLOADS.map(|(name, make)| (name, make(COUNT))) {
        for (what, work) in [("empty", Work::Empty), ("tiny", Work::Tiny)] {
            let subject = Subject::new(&rows, work);
            let each = 1e9 / rows.len() as f64;
            let made = [subject.recording, subject.analysis].map(|t| t.as_secs_f64() * each);
            let ([bare, serial, parallel], [to_bare, to_serial]) = subject.measure();
            println!(
                "{name:>9} {what}: {:4.0} {:4.0} | {bare:6.2} {serial:7.2} {parallel:7.2} | \
                 {to_bare:.2} {to_serial:.2}",
                made[0], made[1],
            );
        }
    }
}

/// Empty tasks at all sizes.
pub fn sizes() {
    team::set_size(THREADS);
    println!("ns a task of 1, 10, ... 1000000: serial, parallel, and its ratio to the bare loop");
    for (name, make) in WORKLOADS {
        let figures = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000].map(|count| {
            let subject = Subject::new(&make(count), Work::Empty);
            let ([_, serial, parallel], [to_bare, _]) = subject.measure();
            format!("{serial:.1} {parallel:.1} ({to_bare:.2})")
        });
        println!("{name:>9}: {}", figures.join(", "));
    }
}
