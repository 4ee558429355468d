//! How the time per operation of recording, and of rewriting, ordering and planning, grows with the
//! number of operations: at 256,000 it should be at most 1.5 times that at 1,000.

use std::time::Duration;

use singa_rs::dtype::DType;
use singa_rs::engine::record;
use singa_rs::engine::{self, Engine, Executable, Inputs, Options, Recording};
use singa_rs::ops::binary::{Binary, BinaryFn};
use singa_rs::ops::gemm::Matmul;
use singa_rs::ops::unary::{Unary, UnaryFn};
use singa_rs::ops::{Kind, Meta, View};
use singa_rs::view::SliceRange;

use crate::measure::{least, timed};

/// The numbers of operations.
const COUNTS: [usize; 5] = [1_000, 4_000, 16_000, 64_000, 256_000];
/// The number of measurements of each time, the least of which counts.
const ROUNDS: usize = 3;
/// The width of all matrices.
const WIDTH: usize = 4;

/// A network that is recorded with about a number of operations; returns its result.
type Network = (&'static str, fn(&Engine, usize, &View) -> View);

const NETWORKS: [Network; 2] = [("matmul and relu", chain), ("LSTM", lstm)];

pub fn scaling() {
    println!("ns an operation of 1000, 4000, ... 256000: recording; rewriting, order and plan");
    for (name, network) in NETWORKS {
        let times = COUNTS.map(|count| times(network, count).map(|time| nanoseconds(time, count)));
        for (what, k) in [("recorded", 0), ("planned", 1)] {
            let figures = times.map(|both| format!("{:.0}", both[k]));
            let growth = times[COUNTS.len() - 1][k] / times[0][k];
            println!("{name:>15}, {what}: {} ({growth:.2} times)", figures.join(", "));
        }
    }
}

fn nanoseconds(time: Duration, count: usize) -> f64 {
    time.as_secs_f64() / count as f64 * 1e9
}

/// The times of recording a network and of making a graph of it.
fn times(network: fn(&Engine, usize, &View) -> View, count: usize) -> [Duration; 2] {
    let engine = engine::host();
    let x = matrix(engine, [1 + count / STEP, WIDTH]);
    let mut recording = None;
    // What is recorded once more has warm caches; a single short recording is mostly noise.
    let repeats = (COUNTS[2] / count).max(1);
    let recorded = least(ROUNDS, || {
        timed(|| (0..repeats).for_each(|_| recording = Some(recorded(engine, network, count, &x))))
    });
    let recording = recording.expect("it was recorded");
    let made =
        least(ROUNDS, || timed(|| (0..repeats).for_each(|_| drop(graph(engine, &recording)))));
    [recorded, made].map(|time| time / repeats as u32)
}

fn recorded(
    engine: &Engine,
    network: fn(&Engine, usize, &View) -> View,
    count: usize,
    x: &View,
) -> Recording {
    let arguments = std::slice::from_ref(x);
    record::begin(Recording::new(engine.device(), arguments)).expect("no other recording");
    let result = network(engine, count, x);
    let mut recording = singa_rs::engine::end_recording(&[result]).expect("a recording");
    recording.seal();
    recording
}

fn graph(engine: &Engine, recording: &Recording) -> Executable {
    Executable::new(engine, recording, &Options::default()).expect("a graph")
}

fn submit(engine: &Engine, kind: impl Into<Kind>, inputs: &[&View]) -> View {
    let inputs: Inputs = inputs.iter().copied().cloned().collect();
    engine.submit(engine.turn(), &kind.into(), inputs).expect("an operation").remove(0)
}

fn unary(engine: &Engine, f: UnaryFn, x: &View) -> View {
    submit(engine, Unary { f }, &[x])
}

fn binary(engine: &Engine, f: BinaryFn, a: &View, b: &View) -> View {
    submit(engine, Binary { f }, &[a, b])
}

fn matrix(engine: &Engine, shape: [usize; 2]) -> View {
    View::new(engine.device(), Meta::new(DType::Float32, shape))
}

fn row(matrix: &View, n: usize) -> View {
    let [rows, columns] =
        [(n, 1), (0, WIDTH)].map(|(start, count)| SliceRange { start, count, step: 1 });
    matrix.slice(&[rows, columns]).expect("a row")
}

/// Layers of a product and ReLU.
fn chain(engine: &Engine, count: usize, x: &View) -> View {
    let w = matrix(engine, [WIDTH, WIDTH]);
    (0..count / 2)
        .fold(row(x, 0), |x, _| unary(engine, UnaryFn::Relu, &submit(engine, Matmul, &[&x, &w])))
}

/// The operations of an LSTM for each element of the sequence.
const STEP: usize = 12;

/// An unrolled LSTM (Hochreiter and Schmidhuber, 1997).
fn lstm(engine: &Engine, count: usize, x: &View) -> View {
    let [w, u] = [(); 2].map(|()| matrix(engine, [WIDTH, 4 * WIDTH]));
    let (mut h, mut c) = (row(x, 0), row(x, 0));
    for step in 0..count / STEP {
        let given = submit(engine, Matmul, &[&row(x, step), &w]);
        let kept = submit(engine, Matmul, &[&h, &u]);
        let sums = binary(engine, BinaryFn::Add, &given, &kept);
        let gate = |k: usize, f| {
            let columns = SliceRange { start: k * WIDTH, count: WIDTH, step: 1 };
            let rows = SliceRange { start: 0, count: 1, step: 1 };
            unary(engine, f, &sums.slice(&[rows, columns]).expect("a gate"))
        };
        let [input, forget, output] = [0, 1, 2].map(|k| gate(k, UnaryFn::Sigmoid));
        let new = gate(3, UnaryFn::Tanh);
        let kept = binary(engine, BinaryFn::Mul, &forget, &c);
        c = binary(engine, BinaryFn::Add, &kept, &binary(engine, BinaryFn::Mul, &input, &new));
        h = binary(engine, BinaryFn::Mul, &output, &unary(engine, UnaryFn::Tanh, &c));
    }
    h
}
