//! What all families have in common.

use super::*;
use crate::ops::geometry::Geometry;
use crate::ops::pooling::Window;

/// The cost of an operation on tensors that are one element expanded.
fn cost(kind: impl Into<Kind>, shapes: &[&[usize]]) -> Cost {
    let kind = kind.into();
    let expanded = |shape: &&[usize]| Meta {
        strides: smallvec::smallvec![0; shape.len()],
        ..Meta::new(DType::Float32, *shape)
    };
    let inputs: Vec<Meta> = shapes.iter().map(expanded).collect();
    let mut io: Vec<&Meta> = inputs.iter().collect();
    let outputs = kind.family().infer(&io).unwrap();
    io.extend(&outputs);
    kind.family().cost(&io)
}

#[test]
fn costs_that_cannot_be_counted_are_the_greatest() {
    const MANY: usize = 1 << 29;
    let square: &[usize] = &[MANY, MANY];
    assert_eq!(cost(gemm::Matmul, &[square, square]).flops, u64::MAX);
    let geometry = Geometry::new(&[1], &[0, 0], &[1], 1);
    let conv = conv::Conv { geometry };
    assert_eq!(cost(conv, &[&[MANY, MANY, 1], &[MANY, MANY, 1]]).flops, u64::MAX);
    let window = Window::new(&[1 << 20], &[1], &[0, 0]);
    assert_eq!(cost(pooling::MaxPool { window }, &[&[1, 1, 1 << 50]]).flops, u64::MAX);
    assert_eq!(cost(gemm::Matmul, &[&[0, MANY], square]).flops, 0);
    let few = cost(gemm::Matmul, &[&[2, 3], &[3, 5]]);
    assert_eq!((few.flops, few.bytes), (60, 4 * 31));
}
