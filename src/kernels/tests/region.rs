use super::*;
use crate::ops::binary::{Binary, BinaryFn};
use crate::ops::region::{Link, Region};
use crate::ops::softmax::{Softmax, SoftmaxGrad};
use crate::ops::unary::{Unary, UnaryFn};

fn link(kind: impl Into<Kind>, operands: &[usize]) -> Link {
    Link { kind: kind.into(), operands: operands.into() }
}

/// tanh(p * t), softmax p = softmax(x + b), and the gradient of that, for inputs x, b and t.
fn with_rows(axis: i64, log: bool) -> Region {
    let links = vec![
        link(Binary { f: BinaryFn::Add }, &[0, 1]),
        link(Softmax { axis, log }, &[3]),
        link(Binary { f: BinaryFn::Mul }, &[4, 2]),
        link(SoftmaxGrad { axis, log }, &[5, 4]),
        link(Unary { f: UnaryFn::Tanh }, &[6]),
    ];
    Region::of_links(3, links, vec![4, 1])
}

/// The results of the links run one at a time.
fn apart(region: &Region, inputs: &[Tensor]) -> Vec<Tensor> {
    let mut values = inputs.to_vec();
    for link in &region.links {
        let operands: Vec<&Tensor> = link.operands.iter().map(|&v| &values[v]).collect();
        values.push(apply_any_width(&link.kind, &operands).unwrap().remove(0));
    }
    region.outputs.iter().map(|o| values[region.inputs + o].clone()).collect()
}

#[track_caller]
fn check(shape: &[usize], bias: &[usize], target: &[usize]) {
    let mut random = Random::new(7);
    for dtype in [DType::Float32, DType::Float64, DType::BFloat16] {
        let inputs = [shape, bias, target].map(|shape| random.tensor(Meta::new(dtype, shape)));
        for log in [false, true] {
            let region = with_rows(-1, log);
            let got = apply_any_width(&region, &inputs).unwrap();
            assert!(got == apart(&region, &inputs), "{shape:?} + {bias:?}, * {target:?}, {dtype}");
        }
    }
}

#[test]
fn rows_are_worked_on_as_a_whole_with_elements_around_them() {
    check(&[37, 10], &[10], &[37, 10]);
    check(&[3, 5, 100], &[1], &[3, 5, 1]);
    check(&[2, 3, 4, 33], &[1, 33], &[2, 3, 4, 33]);
    check(&[600, 1], &[1], &[600, 1]);
    check(&[7], &[1], &[7]);
    check(&[1, 4096], &[4096], &[1]);
    // Not blocked: long rows, rows other than the broadcast ones, and no rows at all.
    check(&[3, 5000], &[5000], &[3, 5000]);
    check(&[3, 5, 100], &[5, 100], &[3, 5, 100]);
    check(&[0, 4], &[4], &[0, 4]);
    check(&[4, 0], &[1], &[4, 0]);
}

/// A bias of channels, and weights of images and of channels, on images that lie channels-last.
#[test]
fn broadcasts_follow_the_order_in_memory() {
    let mut random = Random::new(9);
    let kind = |f| Kind::from(Binary { f });
    let links = vec![link(kind(BinaryFn::Add), &[0, 1]), link(kind(BinaryFn::Mul), &[3, 2])];
    let region = Region::of_links(3, links, vec![1]);
    for (factor, is_blocked) in
        [([1, 5, 1, 1], true), ([3, 1, 1, 1], false), ([1, 1, 1, 1], true), ([3, 5, 1, 1], false)]
    {
        let images = [3, 5, 40, 30];
        let strides = Shape::from(images).dense_like(&[4, 1, 3, 2]);
        let x = Meta { strides, ..Meta::new(DType::Float32, images) };
        let inputs = [x, Meta::new(DType::Float32, [5, 1, 1]), Meta::new(DType::Float32, factor)];
        let values = region.values(&inputs.iter().collect::<Vec<_>>()).unwrap();
        assert_eq!(crate::kernels::cpu::region::is_blocked(&region, &values), is_blocked);
        let inputs = inputs.map(|meta| random.tensor(meta));
        assert!(apply_any_width(&region, &inputs).unwrap() == apart(&region, &inputs));
    }
}

/// Rows are along another axis than the one contiguous in memory.
#[test]
fn rows_of_a_transposed_matrix_are_those_along_its_last_axis() {
    let mut random = Random::new(8);
    let transposed = |random: &mut Random| {
        let meta = Meta { strides: [1, 40][..].into(), ..Meta::new(DType::Float32, [40, 30]) };
        random.tensor(meta)
    };
    let inputs =
        [transposed(&mut random), Tensor::one(DType::Float32, 0.5), transposed(&mut random)];
    let region = with_rows(-1, false);
    assert!(apply_any_width(&region, &inputs).unwrap() == apart(&region, &inputs));
}

#[test]
fn what_is_made_of_other_rows_is_no_link() {
    let square = Meta::new(DType::Float32, [4, 4]);
    let inputs = [&square; 3];
    assert!(with_rows(-1, false).infer(&inputs).is_ok());
    // 1 is the last axis of these rows alone, not of what has more axes beside them.
    for axis in [0, 1, -2] {
        let message = with_rows(axis, false).infer(&inputs).unwrap_err().to_string();
        assert!(message.contains("softmax") && message.contains("rows"), "{message}");
    }
}
