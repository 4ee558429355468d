use super::*;
use crate::kernels::cpu::matmul::product_add;
use crate::ops::binary::{Binary, BinaryFn};
use crate::ops::gemm::*;
use crate::ops::region::{Link, Region};

/// The product of inputs 0 and 1, whose sums start from input 2.
fn product_add() -> Region {
    let producer = Some(Box::new(Link::first(&Matmul.into(), 2)));
    let add = Link { kind: Binary { f: BinaryFn::Add }.into(), operands: [3, 2][..].into() };
    Region { producer, exact: false, ..Region::of_links(3, vec![add], vec![1]) }
}

/// float32 values, so that their products are exact in float64.
fn values(shape: &[usize], seed: u64) -> Vec<f64> {
    noise(shape.iter().product(), seed).into_iter().map(|value| f64::from(value as f32)).collect()
}

/// The sum of c and the products, and the sum of their magnitudes, with negligible rounding error
/// (Neumaier, 1974).
fn reference(terms: impl Iterator<Item = f64>) -> [f64; 2] {
    let (mut sum, mut lost, mut size) = (0.0f64, 0.0, 0.0);
    for term in terms {
        let next = sum + term;
        let is_larger = sum.abs() >= term.abs();
        lost += if is_larger { (sum - next) + term } else { (term - next) + sum };
        (sum, size) = (next, size + term.abs());
    }
    [sum + lost, size]
}

/// Asserts that the product of an m x k and a k x n matrix plus c is within the documented bound;
/// `turned` says which of them are column-major.
fn check(dtype: DType, [m, n, k]: [usize; 3], c: &[usize], turned: [bool; 2]) {
    let factor = |[rows, columns]: [usize; 2], is_turned: bool, seed| {
        let strides = if is_turned { [1, rows as isize] } else { [columns as isize, 1] };
        Tensor::strided(dtype, &[rows, columns], &strides, &values(&[rows, columns], seed))
    };
    let (a, b) = (factor([m, k], turned[0], 1), factor([k, n], turned[1], 2));
    let c = Tensor::dense(dtype, c, &values(c, 3));
    let unit = if dtype == DType::Float32 { 2f64.powi(-24) } else { 2f64.powi(-53) };
    let [x, w, add] = [&a, &b, &c].map(|tensor| tensor.values());
    // A library may start its sums elsewhere on other numbers of threads.
    for threads in 1..=4 {
        let y = apply(&product_add(), &[&a, &b, &c], threads).unwrap().remove(0);
        for (at, got) in y.values().into_iter().enumerate() {
            let (i, j) = (at / n, at % n);
            let begin = add[if c.meta.shape == y.meta.shape { at } else { j }];
            let products = (0..k).map(|l| x[i * k + l] * w[l * n + j]);
            let [want, size] = reference(products.chain([begin]));
            let bound = (k + 1) as f64 * unit * size;
            assert!((got - want).abs() <= bound, "{dtype} {m} x {n} x {k}: {got} for {want}");
        }
    }
}

#[test]
fn what_is_added_to_a_product_is_within_the_stated_bound() {
    let sizes = [[7, 5, 3], [64, 48, 100], [96, 130, 70], [300, 90, 64], [1, 700, 300], [4, 6, 0]];
    for dtype in [DType::Float32, DType::Float64] {
        for [m, n, k] in sizes {
            for c in [&[n][..], &[1, n], &[m, n]] {
                for turned in [[false, false], [true, false], [false, true]] {
                    check(dtype, [m, n, k], c, turned);
                }
            }
        }
    }
}

#[test]
fn batches_are_added_to() {
    for dtype in [DType::Float32, DType::Float64] {
        let of = |shape: &[usize], seed| Tensor::dense(dtype, shape, &values(shape, seed));
        let (a, b) = (of(&[3, 2, 40, 50], 1), of(&[2, 50, 60], 2));
        let product = apply(&Matmul, &[&a, &b], 2).unwrap().remove(0).values();
        for c in [of(&[60], 3), of(&[3, 2, 40, 60], 4)] {
            let got = apply(&product_add(), &[&a, &b, &c], 2).unwrap().remove(0).values();
            let add = c.values();
            let want = product.iter().enumerate().map(|(i, y)| y + add[i % add.len()]);
            assert!(got.iter().zip(want).all(|(got, want)| (got - want).abs() < 1e-4));
        }
    }
}

/// What sums cannot start from is added to them.
#[test]
fn other_addends_are_added_exactly() {
    for (dtype, shape) in [
        (DType::Float32, &[3, 1][..]),
        (DType::Float32, &[]),
        (DType::Float32, &[1]),
        (DType::Float16, &[5]),
    ] {
        let of = |shape: &[usize], seed| Tensor::dense(dtype, shape, &values(shape, seed));
        let (a, b, c) = (of(&[3, 4], 1), of(&[4, 5], 2), of(shape, 3));
        let y = apply(&Matmul, &[&a, &b], 2).unwrap().remove(0);
        assert!(!product_add::fits(&c.meta, &y.meta), "{shape:?}");
        let want = apply(&Binary { f: BinaryFn::Add }, &[&y, &c], 2).unwrap();
        assert!(apply(&product_add(), &[&a, &b, &c], 2).unwrap() == want, "{dtype} {shape:?}");
    }
}
