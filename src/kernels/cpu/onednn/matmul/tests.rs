use super::*;
use crate::kernels::testing::{Random, Tensor, assert_near, run, tolerance};
use crate::ops::{Family, gemm::Matmul};

/// y = a b in float64, row-major, with broadcast batches.
fn naive(a: &Tensor, b: &Tensor, y: &Meta) -> Vec<f64> {
    let (x, w) = (a.values(), b.values());
    let rank = y.shape.rank();
    let [m, n] = [y.shape[rank - 2], y.shape[rank - 1]];
    let k = *a.meta.shape.last().unwrap();
    let batch = |t: &Meta, index: usize| {
        let (mut rest, mut at, mut step) = (index, 0, 1);
        for d in (0..rank - 2).rev() {
            let place = rest % y.shape[d];
            rest /= y.shape[d];
            if let Some(own) = (d + t.shape.rank()).checked_sub(rank) {
                at += if t.shape[own] == 1 { 0 } else { place * step };
                step *= t.shape[own];
            }
        }
        at
    };
    let mut out = Vec::new();
    for index in 0..y.shape[..rank - 2].iter().product() {
        let (at, bt) = (batch(&a.meta, index) * m * k, batch(&b.meta, index) * k * n);
        for i in 0..m {
            for j in 0..n {
                out.push((0..k).map(|l| x[at + i * k + l] * w[bt + l * n + j]).sum());
            }
        }
    }
    out
}

/// Values that half types represent exactly.
fn filled(meta: Meta, seed: usize) -> Tensor {
    let value = |i: usize| ((i * 37 + seed * 11) % 41) as f64 / 32.0 - 0.6;
    let values: Vec<f64> = (0..meta.numel()).map(value).collect();
    Tensor::new(meta, &values)
}

/// Compares with the naive product; returns the number of steps.
fn check(a: Meta, b: Meta, width: usize) -> usize {
    let y = Matmul.infer(&[&a, &b]).unwrap().remove(0);
    let (a, b) = (filled(a, 1), filled(b, 2));
    let io = [&a.meta, &b.meta, &y];
    let Some(kernel) = matmul(&io, Some(Width(width))).unwrap() else {
        assert!(!onednn::is_available(), "not offered for {io:?}");
        eprintln!("skipped: oneDNN is missing");
        return 1;
    };
    let got = run(&kernel, &[&a, &b], std::slice::from_ref(&y)).unwrap();
    let k = *a.meta.shape.last().unwrap() as f64;
    let near = tolerance(y.dtype) * k.sqrt();
    assert_near(&got[0].values(), &naive(&a, &b, &y), near, &format!("{io:?}"));
    kernel.len()
}

fn transposed(dtype: DType, [rows, cols]: [usize; 2]) -> Meta {
    let strides = smallvec::smallvec![1, rows as isize];
    Meta { strides, ..Meta::new(dtype, [rows, cols]) }
}

const TYPES: [DType; 3] = [DType::Float32, DType::BFloat16, DType::Float16];

#[test]
fn matrices_and_their_transposes_need_no_copy() {
    let sizes = [[64, 256, 784], [1, 10, 7], [10, 1, 7], [1, 1, 1], [5, 1, 1], [3, 5, 1]];
    for (dtype, [m, n, k]) in TYPES.into_iter().flat_map(|t| sizes.map(|s| (t, s))) {
        let (a, b) = (Meta::new(dtype, [m, k]), Meta::new(dtype, [k, n]));
        let (at, bt) = (transposed(dtype, [m, k]), transposed(dtype, [k, n]));
        for (a, b) in [(&a, &b), (&at, &b), (&a, &bt), (&at, &bt)] {
            let steps = check(a.clone(), b.clone(), 2);
            // Half types without hardware support are widened in extra steps.
            assert!(steps == 1 || dtype != DType::Float32, "{a:?} {b:?}");
        }
    }
}

/// Queries, keys and values of attention interleaved in one tensor (batch, steps, 3 * heads *
/// width), viewed as batches of matrices (batch, heads, steps, width).
fn heads([batch, steps, heads, width]: [usize; 4], parts: usize) -> Meta {
    let row = parts * heads * width;
    let strides = [steps * row, width, row, 1].map(|stride| stride as isize);
    Meta { strides: strides[..].into(), ..Meta::new(DType::Float32, [batch, heads, steps, width]) }
}

fn swapped(meta: &Meta) -> Meta {
    let mut meta = meta.clone();
    meta.shape.swap(2, 3);
    meta.strides.swap(2, 3);
    meta
}

#[test]
fn batches_that_lie_apart_need_no_copy() {
    for sizes in [[4, 32, 4, 16], [2, 128, 8, 32], [3, 7, 2, 5]] {
        let [batch, steps, count, _] = sizes;
        let (part, whole) = (heads(sizes, 3), heads(sizes, 1));
        let weights = Meta::new(DType::Float32, [batch, count, steps, steps]);
        // Scores, their application, and the gradients of weights, values and queries.
        assert_eq!(check(part.clone(), swapped(&part), 2), 1);
        assert_eq!(check(weights.clone(), part.clone(), 2), 1);
        assert_eq!(check(whole.clone(), swapped(&part), 2), 1);
        assert_eq!(check(swapped(&weights), whole, 2), 1);
        assert_eq!(check(swapped(&weights), part, 2), 1);
    }
}

#[test]
fn heads_of_one_sample_have_the_code_of_several() {
    let names = |batch| {
        let q = heads([batch, 64, 8, 32], 1);
        let k = swapped(&q);
        let y = Matmul.infer(&[&q, &k]).unwrap().remove(0);
        matmul(&[&q, &k, &y], None).unwrap().map(|steps| steps.to_string())
    };
    assert_eq!(names(1), names(4));
}

#[test]
fn batches_broadcast() {
    let shapes: [[&[usize]; 2]; 6] = [
        [&[4, 3, 17, 33], &[4, 3, 33, 5]],
        [&[4, 3, 17, 33], &[3, 33, 5]],
        [&[4, 1, 17, 33], &[3, 33, 5]],
        [&[17, 33], &[4, 3, 33, 5]],
        [&[4, 3, 17, 33], &[33, 5]],
        [&[6, 1, 33], &[1, 33, 5]],
    ];
    for [a, b] in shapes {
        check(Meta::new(DType::Float32, a), Meta::new(DType::Float32, b), 2);
    }
}

#[test]
fn any_layout_as_plain_loops() {
    let mut random = Random::new(31);
    for round in 0..60 {
        let mut size = || [1, 2, 3, 7, 16, 33][random.below(6)];
        let (m, n, k) = (size(), size(), size());
        let (a, b) = (vec![2, 3, m, k], vec![3, k, n]);
        let [a, b] = [a, b].map(|shape| {
            // Leading dimensions of 1 broadcast.
            let rank = 2 + random.below(shape.len() - 1);
            let mut shape = shape[shape.len() - rank..].to_vec();
            shape[..rank - 2].iter_mut().for_each(|e| *e = [1, *e][random.below(2)]);
            random.layout(TYPES[round % 3], &shape)
        });
        check(a, b, 1 + round % 2);
    }
}

#[test]
fn both_operands_may_repeat() {
    let expanded = |shape: &[usize], strides: &[isize]| Meta {
        strides: strides.into(),
        ..Meta::new(DType::Float32, shape)
    };
    check(expanded(&[3, 4, 5], &[0, 5, 1]), expanded(&[3, 5, 2], &[0, 2, 1]), 2);
    check(expanded(&[2, 3, 4, 5], &[0, 20, 5, 1]), expanded(&[2, 1, 5, 2], &[0, 0, 2, 1]), 2);
    check(expanded(&[3, 4, 5], &[0, 0, 0]), expanded(&[3, 5, 2], &[0, 0, 0]), 2);
}

/// Factors may be one row or column expanded. oneDNN would end the process.
#[test]
fn axes_are_not_longer_than_onednn_counts() {
    for [m, k, n] in [[1 << 32, 8, 8], [8, 1 << 33, 8], [8, 8, 1 << 36]] {
        let expanded = |shape: [usize; 2]| Meta {
            strides: smallvec::smallvec![0, 0],
            ..Meta::new(DType::Float32, shape)
        };
        let (a, b) = (expanded([m, k]), expanded([k, n]));
        let y = Matmul.infer(&[&a, &b]).unwrap().remove(0);
        assert!(matmul(&[&a, &b, &y], Some(Width(2))).unwrap().is_none());
    }
}
