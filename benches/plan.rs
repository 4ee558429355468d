//! The cost of planning and the heights it reaches, on generated traces; and which gapless packings
//! the exact search finds.
//! `cargo bench --no-default-features --bench plan [-- name]`.
#![allow(missing_docs)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use singa_rs::packing::exact::{Effort, Method, Packing, pack};
use singa_rs::packing::plan;
use singa_rs::packing::traces::{self, PACKED, Trace};

const TENSORS: usize = 100_000;

/// A name, and a generator of a trace with that many pieces from a seed.
type Maker = (&'static str, fn(usize, u64) -> Trace);

fn planning(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group(format!("plan of {TENSORS}"));
    group.sample_size(10);
    let makers: [Maker; 2] = [("training", traces::training), ("pareto", traces::pareto)];
    for (name, make) in makers {
        let trace = make(TENSORS, 0);
        group.bench_function(name, |b| {
            b.iter(|| plan(black_box(&trace.lifetimes), black_box(&trace.sizes), 64));
        });
        for seed in 0..5 {
            let trace = make(TENSORS, seed);
            let plan = plan(&trace.lifetimes, &trace.sizes, 64);
            let over = plan.height as f64 / plan.bound as f64;
            println!("{name}, seed {seed}: height over bound {over:.6}");
        }
    }
    group.finish();
}

/// Ten packings of each of four sizes, at most a minute each.
fn packings(_: &mut Criterion) {
    for (boxes, is_loose) in [150, 250, 350, 450].into_iter().flat_map(|b| [(b, false), (b, true)])
    {
        for method in [Method::Any, Method::Tiling, Method::Branch] {
            let times: Vec<Duration> =
                (0..10).filter_map(|seed| found(boxes, seed, is_loose, method)).collect();
            let longest = times.iter().max().copied().unwrap_or_default();
            let kind = if is_loose { "loose" } else { "tight" };
            println!(
                "{boxes} {kind} boxes, {method:?}: {} of 10 found, in {longest:.1?} at most",
                times.len()
            );
        }
    }
}

/// The time it took to find a packing, if one was found.
fn found(boxes: usize, seed: u64, is_loose: bool, method: Method) -> Option<Duration> {
    let trace = traces::packing(boxes, seed, is_loose);
    let start = Instant::now();
    let effort = Effort::until(start + limit(method));
    let packing = pack(&trace.lifetimes, &trace.sizes, 64, PACKED.0, method, effort);
    matches!(packing, Packing::Fits(_)).then(|| start.elapsed())
}

/// A packing that branching does not find at once is seldom found at all.
fn limit(method: Method) -> Duration {
    Duration::from_secs(if method == Method::Branch { 5 } else { 60 })
}

criterion_group!(benches, planning, packings);
criterion_main!(benches);
