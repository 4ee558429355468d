use super::*;
use crate::ops::binary::{Binary, BinaryFn};
use crate::ops::conv::{Conv, ConvGradInput};
use crate::ops::gemm::Matmul;
use crate::ops::geometry::Geometry;
use crate::ops::optim::{Rule, Update};
use crate::ops::region::{Link, Region};
use crate::ops::unary::{Unary, UnaryFn};

/// Noise interspersed with all the special values for comparisons and sums.
fn special(n: usize, seed: u64) -> Vec<f64> {
    let specials = [f64::NAN, -0.0, 0.0, f64::INFINITY, f64::NEG_INFINITY, 1e-42];
    let mut values = noise(n, seed);
    for (i, value) in values.iter_mut().step_by(97).enumerate() {
        *value = specials[i % specials.len()];
    }
    values
}

fn tensor(dtype: DType, shape: &[usize], seed: u64) -> Tensor {
    Tensor::dense(dtype, shape, &special(shape.iter().product(), seed))
}

fn link(kind: impl Into<Kind>, operands: &[usize]) -> Link {
    Link { kind: kind.into(), operands: operands.into() }
}

/// A producer followed by relu(y + addend), for inputs addend and those of the producer; `outputs`
/// are numbers of results, of which 0 is the producer's.
fn followed(producer: Link, outputs: &[usize]) -> Region {
    let count = 1 + producer.operands.len();
    let links = vec![
        link(Binary { f: BinaryFn::Add }, &[count, 0]),
        link(Unary { f: UnaryFn::Relu }, &[count + 1]),
    ];
    let producer = Some(Box::new(producer.renamed(|v| v + 1)));
    Region { producer, ..Region::of_links(count, links, outputs.into()) }
}

/// Asserts that a producer fused with what follows gives the same as the operations run in turn;
/// `is_blocked` says whether the region works block by block.
#[track_caller]
fn check(producer: impl Into<Kind>, factors: &[&Tensor], addend: &Tensor, is_blocked: bool) {
    let producer = producer.into();
    let made = apply_any_width(&producer, factors).unwrap().remove(0);
    let sum = apply(&Binary { f: BinaryFn::Add }, &[&made, addend], 2).unwrap().remove(0);
    let bent = apply(&Unary { f: UnaryFn::Relu }, &[&sum], 2).unwrap().remove(0);
    let results = [made, sum, bent];
    for outputs in [&[2][..], &[2, 1], &[2, 0], &[2, 1, 0]] {
        let want: Vec<Tensor> = outputs.iter().map(|&output| results[output].clone()).collect();
        let inputs = [&[addend], factors].concat();
        let region = followed(Link::first(&producer, factors.len()), outputs);
        let metas: Vec<&Meta> = inputs.iter().map(|tensor| &tensor.meta).collect();
        let values = region.values(&metas).unwrap();
        assert_eq!(cpu::Cpu.is_blocked(&region, &values), is_blocked);
        assert!(apply_any_width(&region, &inputs).unwrap() == want, "{region:?}");
    }
}

#[test]
fn products_by_rows_as_one_after_the_other() {
    for dtype in [DType::Float32, DType::Float64, DType::BFloat16] {
        // The same number of bytes for each type.
        let columns = 1600 / dtype.size();
        let (a, b) = (tensor(dtype, &[801, 40], 1), tensor(dtype, &[40, columns], 2));
        for addend in [vec![columns], vec![1, 1], vec![801, 1], vec![801, columns]] {
            check(Matmul, &[&a, &b], &tensor(dtype, &addend, 3), true);
        }
    }
}

#[test]
fn products_of_transposed_factors_as_one_after_the_other() {
    let values = special(640 * 24, 4);
    let a = Tensor::strided(DType::Float32, &[640, 24], &[1, 640], &values);
    let b = Tensor::strided(DType::Float32, &[24, 128], &[1, 24], &special(24 * 128, 5));
    let sum = tensor(DType::Float32, &[640, 128], 6);
    check(Matmul, &[&a, &b], &sum, true);
}

#[test]
fn products_of_batches_as_one_after_the_other() {
    let dtype = DType::Float32;
    let (a, b) = (tensor(dtype, &[9, 100, 40], 1), tensor(dtype, &[40, 400], 2));
    check(Matmul, &[&a, &b], &tensor(dtype, &[400], 3), true);
    let planes = tensor(dtype, &[100, 400], 3);
    check(Matmul, &[&a, &b], &planes, false);
}

/// Noise laid out as attention heads, interleaved in rows three times as long: batches of matrices
/// (4, 6, steps, width), or transposed ones.
fn heads(dtype: DType, steps: usize, width: usize, is_turned: bool) -> Tensor {
    let row = 3 * 6 * width as isize;
    let [outer, down] = [row * steps as isize, row];
    let (sides, strides) = match is_turned {
        false => ([steps, width], [outer, width as isize, down, 1]),
        true => ([width, steps], [outer, width as isize, 1, down]),
    };
    let shape = [4, 6, sides[0], sides[1]];
    Tensor::strided(dtype, &shape, &strides, &special(24 * steps * width, 7))
}

#[test]
fn products_of_heads_as_one_after_the_other() {
    for dtype in [DType::Float32, DType::Float64, DType::BFloat16] {
        let steps = if dtype == DType::Float64 { 95 } else { 151 };
        let (q, k) = (heads(dtype, steps, 20, false), heads(dtype, steps, 20, true));
        // What is added, and right factors, in all ways for one type and in one way for the others.
        let some = |all| if dtype == DType::Float32 { all } else { 1 };
        let addends = [vec![steps], vec![1], vec![4, 6, steps, 1], vec![4, 6, steps, steps]];
        for addend in &addends[..some(4)] {
            check(Matmul, &[&q, &k], &tensor(dtype, addend, 3), true);
        }
        let planes = tensor(dtype, &[steps, steps], 3);
        check(Matmul, &[&q, &k], &planes, false);
        // A transposed left factor, and right factors common to all heads or to all samples.
        let turned = heads(dtype, 20, steps, true);
        let sum = tensor(dtype, &[4, 6, steps, steps], 4);
        let rights = [&[6, 20, steps][..], &[20, steps], &[4, 1, 20, steps]];
        for right in &rights[..some(3)] {
            let right = tensor(dtype, right, 5);
            check(Matmul, &[&turned, &right], &sum, true);
            check(Matmul, &[&q, &right], &sum, true);
        }
    }
}

#[test]
fn empty_batches_as_one_after_the_other() {
    let dtype = DType::Float32;
    let (a, b) = (tensor(dtype, &[0, 300, 16], 1), tensor(dtype, &[0, 16, 300], 2));
    check(Matmul, &[&a, &b], &tensor(dtype, &[300], 3), false);
    let (a, b) = (tensor(dtype, &[8, 300, 0], 1), tensor(dtype, &[8, 0, 300], 2));
    check(Matmul, &[&a, &b], &tensor(dtype, &[300], 3), true);
}

#[test]
fn small_products_as_one_after_the_other() {
    for dtype in [DType::Float32, DType::Float64, DType::Float16] {
        let (a, b) = (tensor(dtype, &[17, 9], 1), tensor(dtype, &[9, 5], 2));
        check(Matmul, &[&a, &b], &tensor(dtype, &[5], 3), false);
    }
}

#[test]
fn convolutions_by_images_as_one_after_the_other() {
    let geometry = Geometry::new(&[1, 1], &[1; 4], &[1, 1], 1);
    for dtype in [DType::Float32, DType::Float64] {
        let channels = 80 / dtype.size();
        let w = tensor(dtype, &[channels, 3, 3, 3], 2);
        let x = tensor(dtype, &[23, 3, 25, 25], 1);
        let one = tensor(dtype, &[1], 3);
        let conv = Conv { geometry: geometry.clone() };
        check(conv.clone(), &[&x, &w], &one, true);
        check(conv, &[&x, &w, &tensor(dtype, &[channels], 4)], &one, true);
        let dy = tensor(dtype, &[23, 3, 25, 25], 5);
        let w = tensor(dtype, &[3, channels, 3, 3], 6);
        let gradient = ConvGradInput { geometry: geometry.clone(), size: [25, 25][..].into() };
        check(gradient, &[&dy, &w], &one, true);
    }
}

#[test]
fn wrong_inputs_are_refused() {
    let region = followed(Link::first(&Matmul.into(), 2), &[2]);
    let [a, b, row] = [&[3, 4][..], &[4, 5], &[5]].map(|shape| Meta::new(DType::Float32, shape));
    assert!(region.infer(&[&row, &a, &b]).is_ok());
    assert!(matches!(region.infer(&[&row]), Err(Error::Arity { .. })));
    assert!(matches!(region.infer(&[&row, &a, &a]), Err(Error::Shape { .. })));
    assert!(matches!(region.infer(&[&a, &a, &b]), Err(Error::Shape { .. })));
}

#[test]
fn operations_where_they_cannot_stand_are_refused() {
    let right = followed(Link::first(&Matmul.into(), 2), &[2, 0]);
    let [a, b, row] = [&[3, 4][..], &[4, 5], &[5]].map(|shape| Meta::new(DType::Float32, shape));
    let refused = |change: &dyn Fn(&mut Region)| {
        let mut region = right.clone();
        change(&mut region);
        region.infer(&[&row, &a, &b]).unwrap_err()
    };
    assert!(right.infer(&[&row, &a, &b]).is_ok());
    let sgd = Update { rule: Rule::Sgd { momentum: false, nesterov: false }, weight_decay: false };
    let changes: [&dyn Fn(&mut Region); 9] = [
        &|r| r.links[1].operands[0] = 5,
        &|r| r.links[0].operands[1] = 9,
        &|r| r.links[0] = link(Matmul, &[1, 2]),
        &|r| r.links[1] = link(Unary { f: UnaryFn::Relu }, &[1]),
        &|r| r.producer = Some(Box::new(link(sgd.clone(), &[1, 1, 2]))),
        &|r| r.consumer = Some(Box::new(link(Unary { f: UnaryFn::Relu }, &[3]))),
        &|r| r.outputs = vec![1, 2],
        &|r| r.outputs = vec![2, 0, 1],
        &|r| r.outputs = vec![],
    ];
    for change in changes {
        let error = refused(change);
        let known = [
            matches!(error, Error::Value { .. }),
            matches!(error, Error::Shape { .. }),
            matches!(error, Error::Arity { .. }),
        ];
        assert!(known.contains(&true), "{error}");
    }
}
