//! What a graph costs: replay of operations that do nothing, against a bare loop over pairs of a
//! function and a context in the same run; analysis per node.
//! `cargo bench --no-default-features --bench graph [-- name]`.
#![allow(missing_docs, unsafe_code)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use singa_rs::device::cpu;
use singa_rs::dtype::DType;
use singa_rs::graph::{Bound, Graph, Queue, Role};
use singa_rs::ops::binary::{Binary, BinaryFn};
use singa_rs::ops::copy::Copy;
use singa_rs::ops::{Effects, Kind, Meta, Prepared, View, kernel};

/// A step of training in the making: blocks of a few sizes, operations that do nothing.
#[derive(Default)]
struct Step {
    queue: Queue,
    roles: Vec<Role>,
    metas: Vec<Arc<Meta>>,
    ops: Vec<[Arc<Prepared>; 4]>,
}

/// What is prepared for each size.
const COPY: usize = 0;
const ADD: usize = 1;
const PRODUCT: usize = 2;
const UPDATE: usize = 3;
/// Elements of the tensors, in turn.
const SIZES: [usize; 7] = [1024, 48, 512, 300, 4096, 16, 1000];

impl Step {
    fn new() -> Step {
        let mut step = Step::default();
        for size in SIZES {
            let view = View::new(cpu::device(), Meta::new(DType::Float32, [size]));
            let pair = [view.clone(), view.clone()];
            let add: Kind = Binary { f: BinaryFn::Add }.into();
            let product: Kind = Binary { f: BinaryFn::Mul }.into();
            let update = Effects::updates(&[(0, 0)]);
            step.ops.push([
                empty(&Copy.into(), &pair[..1], Effects::PURE),
                empty(&add, &pair, Effects::PURE),
                empty(&product, &pair, Effects::PURE),
                empty(&add, &pair, update),
            ]);
            step.metas.push(view.meta);
        }
        step
    }

    fn tensor(&mut self, layer: usize, role: Role) -> View {
        let view = View::of(cpu::device(), &self.metas[layer % SIZES.len()]);
        self.queue.number(&view.block);
        self.roles.push(role);
        view
    }

    fn push(&mut self, layer: usize, which: usize, inputs: &[&View], output: Option<&View>) {
        let op = self.ops[layer % SIZES.len()][which].clone();
        let inputs: Vec<View> = inputs.iter().copied().cloned().collect();
        self.queue.push(op, &inputs, output.map_or(&[], std::slice::from_ref), layer as u32);
    }

    /// Five nodes a layer: two forwards, whose outputs the backward pass needs, and then two
    /// gradients and the update of a parameter.
    fn record(mut self, nodes: usize) -> Step {
        let layers = nodes / 5;
        let mut saved = vec![self.tensor(0, Role::Argument)];
        let params: Vec<View> = (0..layers).map(|l| self.tensor(l, Role::Captured)).collect();
        for (layer, param) in params.iter().enumerate() {
            let [x, y] = [0, 0].map(|_| self.tensor(layer, Role::Temporary));
            self.push(layer, PRODUCT, &[&saved[layer], param], Some(&x));
            self.push(layer, COPY, &[&x], Some(&y));
            saved.push(y);
        }
        let mut gradient = self.tensor(layers, Role::Slot);
        for layer in (0..layers).rev() {
            let [of_param, next] = [0, 0].map(|_| self.tensor(layer, Role::Temporary));
            self.push(layer, PRODUCT, &[&gradient, &saved[layer]], Some(&of_param));
            self.push(layer, ADD, &[&gradient, &params[layer]], Some(&next));
            self.push(layer, UPDATE, &[&params[layer], &of_param], None);
            gradient = next;
        }
        self
    }

    fn graph(&self) -> Graph {
        Graph::new(self.queue.clone(), self.roles.clone()).expect("a graph")
    }
}

/// An operation whose kernel does nothing.
fn empty(kind: &Kind, inputs: &[View], effects: Effects) -> Arc<Prepared> {
    let mut op = Prepared::new(kind, inputs, None, 1).expect("an operation");
    op.kernel = kernel(0, |_| Ok(()));
    op.effects = effects;
    Arc::new(op)
}

type Pair = (fn(*const Prepared), *const Prepared);

fn nothing(_: *const Prepared) {}

/// The same calls as those of a replay, from a list of functions and contexts.
fn pairs(step: &Step) -> Vec<Pair> {
    let pair = |node: &singa_rs::graph::Node| (nothing as fn(_), Arc::as_ptr(&node.op));
    step.queue.nodes().iter().map(pair).collect()
}

fn bare(pairs: &[Pair]) {
    for (function, context) in pairs {
        function(*context);
    }
}

/// A graph on memory that nothing touches.
fn bind(graph: &Graph) -> Bound {
    let anywhere = std::ptr::without_provenance_mut(1 << 20);
    let mut bound = Bound::new(graph, anywhere);
    (0..graph.roles().len() as u32).for_each(|block| bound.bind(block, anywhere));
    bound
}

fn run(bound: &Bound) {
    // SAFETY: the kernels touch no memory.
    unsafe { bound.run() }.expect("nothing fails");
}

/// The shortest of some runs: what else the machine does only ever adds.
fn least(rounds: usize, mut run: impl FnMut() -> Duration) -> Duration {
    (0..rounds).map(|_| run()).min().unwrap_or_default()
}

fn timed<T>(run: impl FnOnce() -> T) -> Duration {
    let start = Instant::now();
    let made = run();
    let time = start.elapsed();
    drop(black_box(made));
    time
}

fn replay(criterion: &mut Criterion) {
    for nodes in [1_000, 10_000, 100_000, 1_000_000] {
        let step = Step::new().record(nodes);
        let (pairs, bound) = (pairs(&step), bind(&step.graph()));
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

/// How many times as long as the bare loop a replay takes, both in turn.
fn ratio(nodes: usize, pairs: &[Pair], bound: &Bound) -> f64 {
    let rounds = (2_000_000 / nodes).max(3);
    let bare = least(rounds, || timed(|| bare(black_box(pairs))));
    let graph = least(rounds, || timed(|| run(black_box(bound))));
    graph.as_secs_f64() / bare.as_secs_f64()
}

fn analysis(criterion: &mut Criterion) {
    let steps = [100_000, 1_000_000].map(|nodes| (nodes, Step::new().record(nodes)));
    for (nodes, step) in &steps {
        let mut group = criterion.benchmark_group(format!("analysis of {nodes}"));
        group.throughput(Throughput::Elements(*nodes as u64)).sample_size(10);
        let given = || (step.queue.clone(), step.roles.clone());
        group.bench_function("graph", |bencher| {
            let analyse = |(queue, roles)| Graph::new(queue, roles).expect("a graph");
            bencher.iter_batched(given, analyse, BatchSize::PerIteration);
        });
    }
    let [small, large] = steps.map(|(nodes, step)| {
        let analyse = || {
            let (queue, roles) = (step.queue.clone(), step.roles.clone());
            timed(|| Graph::new(queue, roles))
        };
        least(7, analyse).as_secs_f64() / nodes as f64 * 1e9
    });
    println!(
        "analysis: {small:.0} ns a node of 100000, {large:.0} ns a node of 1000000: {:.2} times\n",
        large / small
    );
}

criterion_group!(benches, replay, analysis);
criterion_main!(benches);
