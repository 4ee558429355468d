//! The cost of operations through the engine, without Python: the overhead of small ones, the speed
//! of large ones. `cargo bench --no-default-features [-- name]`.
#![allow(missing_docs)]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use serde_json::{Value, json};
use singa_rs::dtype::DType;
use singa_rs::engine;
use singa_rs::ops::{Kind, Meta, View};

/// (name, attributes, shapes of the inputs, work in units of `Throughput`).
fn cases() -> Vec<(&'static str, Value, Vec<Vec<usize>>, Throughput)> {
    let window = json!({"op": "conv", "stride": [1, 1], "padding": [1, 1, 1, 1],
                        "dilation": [1, 1], "groups": 1});
    let sum = json!({"op": "reduce", "f": "sum", "axes": [], "keepdims": false});
    let softmax = json!({"op": "softmax", "axis": -1, "log": false});
    let unary = |f: &str| json!({"op": "unary", "f": f});
    let (large, bytes) = (vec![1024, 1024], Throughput::Bytes(8 << 20));
    let flops = |n: u64| Throughput::Elements(2 * n);
    vec![
        ("relu 4x4", unary("relu"), vec![vec![4, 4]], Throughput::Elements(1)),
        ("relu 1024x1024", unary("relu"), vec![large.clone()], bytes.clone()),
        ("exp 1024x1024", unary("exp"), vec![large.clone()], bytes.clone()),
        ("sum 1024x1024", sum, vec![large.clone()], Throughput::Bytes(4 << 20)),
        ("softmax 1024x1024", softmax, vec![large.clone()], bytes),
        ("matmul 512", json!({"op": "matmul"}), vec![vec![512, 512]; 2], flops(512 * 512 * 512)),
        (
            "conv2d 8x64x28x28, 64 of 3x3",
            window,
            vec![vec![8, 64, 28, 28], vec![64, 64, 3, 3]],
            flops(8 * 64 * 28 * 28 * 64 * 9),
        ),
    ]
}

fn operations(criterion: &mut Criterion) {
    let engine = engine::host();
    for (name, attributes, shapes, throughput) in cases() {
        let kind: Kind = serde_json::from_value(attributes).expect("an operation");
        let input =
            |shape: Vec<usize>| View::new(engine.device(), Meta::new(DType::Float32, &shape[..]));
        let inputs: Vec<View> = shapes.into_iter().map(input).collect();
        let mut group = criterion.benchmark_group("operations");
        group.throughput(throughput);
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let inputs = black_box(&inputs).iter().cloned().collect();
                engine.submit(engine.turn(), &kind, inputs).expect("it runs")
            });
        });
    }
}

criterion_group!(benches, operations);
criterion_main!(benches);
