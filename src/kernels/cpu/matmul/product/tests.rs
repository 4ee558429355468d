use super::*;
use crate::kernels::testing::{Tensor, apply_any_width, assert_near, noise, run};
use crate::ops::Family;
use crate::ops::gemm::Matmul;

/// Attention heads interleaved in rows with `parts` such parts, as batches of matrices (batch,
/// heads, steps, width).
fn heads(dtype: DType, [batch, count, steps, width]: [usize; 4], parts: usize) -> Meta {
    let row = parts * count * width;
    let strides = [steps * row, width, row, 1].map(|stride| stride as isize);
    Meta { strides: strides[..].into(), ..Meta::new(dtype, [batch, count, steps, width]) }
}

fn swapped(meta: &Meta) -> Meta {
    let mut meta = meta.clone();
    let rank = meta.shape.rank();
    meta.shape.swap(rank - 2, rank - 1);
    meta.strides.swap(rank - 2, rank - 1);
    meta
}

/// The number of blocks of the product of two factors.
fn blocks(a: &Meta, b: &Meta) -> usize {
    let y = Matmul.infer(&[a, b]).unwrap().remove(0);
    let all = Matrices::new([a, b, &y]);
    all.rows().div_ceil(sizes::block(&all).max(1))
}

/// Asserts that a product in this many blocks is the same on any number of threads, and close to
/// the product that a library computes as a whole.
#[track_caller]
fn check(a: Meta, b: Meta, count: usize) {
    assert_eq!(blocks(&a, &b), count, "{a:?} {b:?}");
    let y = Matmul.infer(&[&a, &b]).unwrap().remove(0);
    let fill = |meta: Meta, seed| Tensor::new(meta.clone(), &noise(meta.numel(), seed));
    let (a, b) = (fill(a, 1), fill(b, 2));
    let got = apply_any_width(&Matmul, &[&a, &b]).unwrap().remove(0);
    let kernel = whole([&a.meta, &b.meta, &y], Some(Width(2))).unwrap();
    let want = run(&*kernel, &[&a, &b], &[y]).unwrap().remove(0);
    let near = if a.meta.dtype == DType::BFloat16 { 0.1 } else { 1e-4 };
    assert_near(&got.values(), &want.values(), near, "the product in blocks");
}

#[test]
fn heads_of_attention_in_blocks() {
    let q = |sizes, parts| heads(DType::Float32, sizes, parts);
    // All heads of one sample, or of several.
    check(q([6, 8, 128, 32], 3), swapped(&q([6, 8, 128, 32], 3)), 6);
    check(q([16, 4, 72, 20], 1), swapped(&q([16, 4, 72, 20], 1)), 2);
    // Some heads of a sample; the other factor is the same for all samples, or for all heads.
    check(q([2, 6, 256, 16], 3), swapped(&q([2, 6, 256, 16], 3)), 6);
    check(q([2, 6, 256, 16], 3), Meta::new(DType::Float32, [6, 16, 256]), 6);
    check(q([4, 4, 256, 16], 3), Meta::new(DType::Float32, [4, 1, 16, 256]), 8);
    // Transposed left factors, and odd sizes.
    check(swapped(&q([2, 6, 16, 251], 2)), q([2, 6, 16, 243], 3), 6);
}

#[test]
fn batches_of_any_float_in_blocks() {
    for (dtype, count) in [(DType::Float64, 8), (DType::BFloat16, 2), (DType::Float16, 2)] {
        check(Meta::new(dtype, [24, 150, 10]), Meta::new(dtype, [24, 10, 170]), count);
    }
}

#[test]
fn batches_that_blocks_bring_nothing_stay_whole() {
    let meta = |shape: &[usize]| Meta::new(DType::Float32, shape);
    // Small ones, interleaved matrices, too large ones, and ones with large factors.
    assert_eq!(blocks(&meta(&[16, 64, 16]), &meta(&[16, 16, 64])), 1);
    assert_eq!(blocks(&meta(&[3, 400, 16]), &meta(&[3, 16, 400])), 1);
    assert_eq!(blocks(&meta(&[4, 600, 16]), &meta(&[4, 16, 600])), 1);
    assert_eq!(blocks(&meta(&[64, 128, 128]), &meta(&[64, 128, 64])), 1);
    // Dense heads that are too large together.
    let q = heads(DType::Float32, [4, 8, 256, 16], 1);
    assert_eq!(blocks(&q, &swapped(&q)), 1);
    let q = heads(DType::Float32, [4, 8, 256, 16], 2);
    assert_eq!(blocks(&q, &swapped(&q)), 16);
}

#[test]
fn empty_batches_and_empty_sums() {
    for [a, b] in [[&[0, 3, 400, 16][..], &[3, 16, 400]], [&[4, 0, 16], &[4, 16, 400]]] {
        check(Meta::new(DType::Float32, a), Meta::new(DType::Float32, b), 0);
    }
    check(Meta::new(DType::Float32, [8, 300, 0]), Meta::new(DType::Float32, [8, 0, 300]), 8);
}

/// Factors may be one element expanded: the products then outnumber what can be counted.
#[test]
fn sizes_that_cannot_be_multiplied_are_large() {
    for [m, k, n] in [[1 << 29, 1 << 29, 1 << 29], [1 << 55, 4, 1], [1 << 20, 1 << 39, 1 << 20]] {
        let expanded = |shape: [usize; 2]| Meta {
            strides: smallvec::smallvec![0, 1],
            ..Meta::new(DType::Float32, shape)
        };
        let (a, b) = (expanded([m, k]), expanded([k, n]));
        let y = Matmul.infer(&[&a, &b]).unwrap().remove(0);
        assert!(!is_own([&a, &b, &y]) || n == 1);
        assert!(is_split([&a, &b, &y]) || m != 1 << 55);
    }
}
