use super::*;
use crate::device::cpu;
use crate::dtype::DType;
use crate::ops::binary::{Binary, BinaryFn};
use crate::ops::gemm::Matmul;
use crate::ops::region::{Link, Region};
use crate::ops::unary::{Unary, UnaryFn};
use crate::ops::{Kind, Meta, View};

fn prepared(kind: impl Into<Kind>, shapes: [&[usize]; 2]) -> Call {
    let view = |shape: &[usize]| View::new(cpu::device(), Meta::new(DType::Float32, shape));
    Call::new(&kind.into(), &shapes.map(view)[..]).unwrap()
}

/// The addition of vectors.
fn add(elements: usize) -> Call {
    prepared(Binary { f: BinaryFn::Add }, [&[elements]; 2])
}

/// The product of square matrices.
fn product(rows: usize) -> Call {
    prepared(Matmul, [&[rows, rows]; 2])
}

/// Whether two times are equal up to rounding.
fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

#[test]
fn a_call_costs_something_even_if_it_does_nothing() {
    assert_eq!(work(&add(0)), 0.0);
    for elements in [0, 1, 1000, 1 << 22] {
        let op = add(elements);
        assert!(close(nanoseconds(&op), CALL + work(&op)));
    }
}

#[test]
fn memory_beyond_the_caches_is_slower() {
    let most = CACHED as usize / 12;
    // Within the caches, twice the work takes twice the time.
    assert!(close(work(&add(most & !1)), 2.0 * work(&add(most / 2))));
    // Bytes beyond the caches move at the lower rate.
    let more = 1 << 20;
    let beyond = work(&add(most + more)) - work(&add(most));
    let within = work(&add(most)) - work(&add(most - more / 2));
    let bytes = 12.0 * more as f64;
    assert!(beyond > within);
    assert!((beyond - (bytes / FAR + more as f64 / SPARSE)).abs() < 1.0);
    assert!((2.0 * within - (bytes / NEAR + more as f64 / SPARSE)).abs() < 1.0);
}

#[test]
fn what_a_small_product_and_what_follows_it_compute_costs_alike() {
    let relu = Link { kind: Unary { f: UnaryFn::Relu }.into(), operands: smallvec::smallvec![2] };
    let producer = Some(Box::new(Link::first(&Matmul.into(), 2)));
    let region = Region { producer, ..Region::of_links(2, vec![relu], vec![1]) };
    let op = prepared(region, [&[8, 8]; 2]);
    let cost = op.cost();
    assert!(cost.behind > 0 && cost.behind < cost.flops);
    assert!(close(work(&op), cost.bytes as f64 / NEAR + cost.flops as f64 / SPARSE));
}

#[test]
fn operations_are_cheaper_where_they_are_many_for_each_byte() {
    let each = |rows: usize| {
        let op = product(rows);
        (work(&op) - op.cost().bytes as f64 / NEAR) / op.cost().flops as f64
    };
    // A small product runs at the sparse rate, as do the first `SMALL` operations of a large one.
    let small = (SMALL / 2.0).cbrt() as usize;
    assert!(small as f64 / 6.0 < MANY && close(each(small), 1.0 / SPARSE));
    let flops = product(256).cost().flops as f64;
    assert!(close(each(256), (SMALL / SPARSE + (flops - SMALL) / DENSE) / flops));
    let costs: Vec<f64> = [64, 128, 256, 512].map(each).to_vec();
    assert!(costs.is_sorted_by(|a, b| a > b) && costs[3] > 1.0 / DENSE);
}
