//! Serial replay and analysis of a training step.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput};
use singa_rs::graph::{Bound, Graph};

use crate::measure::{Pair, bare, bind, least, pairs, run, timed};
use crate::step::Step;

pub fn replay(criterion: &mut Criterion) {
    for nodes in [1_000, 10_000, 100_000, 1_000_000] {
        let step = Step::new().record(nodes);
        let graph = step.graph();
        let (pairs, bound) = (pairs(&graph), bind(&graph));
        let mut group = criterion.benchmark_group(format!("replay of {nodes}"));
        group.throughput(Throughput::Elements(nodes as u64));
        group.bench_function("bare loop", |b| b.iter(|| bare(black_box(&pairs))));
        group.bench_function("graph", |b| b.iter(|| run(black_box(&bound))));
        group.finish();
        let mut ratios: Vec<f64> = (0..9).map(|_| ratio(nodes, &pairs, &bound)).collect();
        ratios.sort_by(f64::total_cmp);
        println!("replay of {nodes} nodes: {:.2} times a bare loop\n", ratios[4]);
    }
}

/// The time of a replay relative to the bare loop, measured in turn.
fn ratio(nodes: usize, pairs: &[Pair], bound: &Bound) -> f64 {
    let rounds = (2_000_000 / nodes).max(3);
    let bare = least(rounds, || timed(|| bare(black_box(pairs))));
    let graph = least(rounds, || timed(|| run(black_box(bound))));
    graph.as_secs_f64() / bare.as_secs_f64()
}

pub fn analysis(criterion: &mut Criterion) {
    let steps = [100_000, 1_000_000].map(|nodes| (nodes, Step::new().record(nodes)));
    for (nodes, step) in &steps {
        let mut group = criterion.benchmark_group(format!("analysis of {nodes}"));
        group.throughput(Throughput::Elements(*nodes as u64)).sample_size(10);
        let given = || (step.queue.clone(), step.roles.clone());
        group.bench_function("graph", |bencher| {
            let analyse =
                |(queue, roles)| Graph::new(queue, roles, &step.kernels).expect("a graph");
            bencher.iter_batched(given, analyse, BatchSize::PerIteration);
        });
    }
    let [small, large] = steps.map(|(nodes, step)| {
        let analyse = || {
            let (queue, roles) = (step.queue.clone(), step.roles.clone());
            timed(|| Graph::new(queue, roles, &step.kernels))
        };
        least(7, analyse).as_secs_f64() / nodes as f64 * 1e9
    });
    println!(
        "analysis: {small:.0} ns a node of 100000, {large:.0} ns a node of 1000000: {:.2} times\n",
        large / small
    );
}
