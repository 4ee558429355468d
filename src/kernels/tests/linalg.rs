//! Factors multiplied again, solutions put into their systems, on any number of threads.

use super::*;
use crate::ops::linalg::*;

const FLOATS: [DType; 2] = [DType::Float32, DType::Float64];

/// A stack of matrices in memory where each is transposed.
fn stack(dtype: DType, [count, m, n]: [usize; 3], diagonal: f64) -> Tensor {
    let mut values = noise(count * m * n, 11);
    values.chunks_mut(m * n).for_each(|a| (0..m.min(n)).for_each(|i| a[i * n + i] += diagonal));
    let strides = [(m * n) as isize, 1, m as isize];
    Tensor::strided(dtype, &[count, m, n], &strides, &values)
}

/// The products of two stacks of matrices: (count, m, k) and (count, k, n).
fn product(a: &[f64], b: &[f64], [count, m, k, n]: [usize; 4]) -> Vec<f64> {
    let term = |c, i, l, j| a[(c * m + i) * k + l] * b[(c * k + l) * n + j];
    let element = |c, i, j| (0..k).map(|l| term(c, i, l, j)).sum();
    let places = (0..count * m * n).map(|at| (at / (m * n), at / n % m, at % n));
    places.map(|(c, i, j)| element(c, i, j)).collect()
}

fn made(f: LinalgFn, a: &Tensor) -> Vec<Vec<f64>> {
    let outputs = apply_any_width(&Linalg { f }, std::slice::from_ref(a)).unwrap();
    outputs.iter().map(Tensor::values).collect()
}

#[test]
fn factors_multiply_to_the_matrices() {
    let (count, m, n) = (70, 16, 12);
    for dtype in FLOATS {
        let tolerance = 16.0 * tolerance(dtype);
        let a = stack(dtype, [count, m, n], 0.0);
        let qr = made(LinalgFn::Qr, &a);
        assert_near(&product(&qr[0], &qr[1], [count, m, n, n]), &a.values(), tolerance, "Q R");
        let svd = made(LinalgFn::Svd, &a);
        let scaled = svd[0].iter().enumerate().map(|(i, u)| u * svd[1][i / (m * n) * n + i % n]);
        let scaled: Vec<f64> = scaled.collect();
        assert_near(&product(&scaled, &svd[2], [count, m, n, n]), &a.values(), tolerance, "U S V");
        let descends = |s: &[f64]| s.is_sorted_by(|a, b| a >= b) && s[n - 1] >= 0.0;
        assert!(svd[1].chunks(n).all(descends));
    }
}

/// Of ranks below what their extents allow: the hard cases of rotations.
#[test]
fn matrices_of_deficient_rank_have_factors() {
    let (m, n) = (9, 7);
    let row = |i: usize, j: usize| (i == 4) as u8 as f64 * (j as f64 - 2.0);
    let matrices: [&dyn Fn(usize, usize) -> f64; 5] = [
        &|_, _| 0.0,
        &|_, _| 1.0,
        &|i, j| (i as f64 - 2.5) * (j as f64 + 0.3),
        &|i, j| ((i % 4) * (j % 3)) as f64 - 1.0,
        &row,
    ];
    let places = || (0..m * n).map(|at| (at / n, at % n));
    let values: Vec<f64> = matrices.iter().flat_map(|f| places().map(|(i, j)| f(i, j))).collect();
    for dtype in FLOATS {
        let a = Tensor::dense(dtype, &[5, m, n], &values);
        let svd = made(LinalgFn::Svd, &a);
        let scaled = svd[0].iter().enumerate().map(|(i, u)| u * svd[1][i / (m * n) * n + i % n]);
        let scaled: Vec<f64> = scaled.collect();
        let tolerance = 64.0 * tolerance(dtype);
        assert_near(&product(&scaled, &svd[2], [5, m, n, n]), &values, tolerance, "U S V");
        let first = &svd[0][m * n..2 * m * n];
        let one: Vec<f64> = (0..n * n).map(|at| (at / n == at % n) as u8 as f64).collect();
        let across: Vec<f64> = (0..n * m).map(|at| first[at % m * n + at / m]).collect();
        assert_near(&product(&across, first, [1, n, m, n]), &one, tolerance, "U^T U");
    }
}

#[test]
fn solutions_solve_their_systems() {
    let (count, n, k) = (70, 16, 3);
    for dtype in FLOATS {
        let (a, b) = (stack(dtype, [count, n, n], 6.0), stack(dtype, [count, n, k], 0.0));
        let near = |x: &Tensor, what| {
            let got = product(&a.values(), &x.values(), [count, n, n, k]);
            assert_near(&got, &b.values(), 16.0 * tolerance(dtype), what);
        };
        near(&apply_any_width(&Solve {}, &[a.clone(), b.clone()]).unwrap()[0], "A X");
        let inverse = Tensor::dense(dtype, &[count, n, n], &made(LinalgFn::Inv, &a)[0]);
        let x = product(&inverse.values(), &b.values(), [count, n, n, k]);
        near(&Tensor::dense(dtype, &[count, n, k], &x), "A A^-1 B");
    }
}

#[test]
fn the_first_matrix_without_a_result_is_named() {
    let mut values = vec![1.0; 12];
    values[7] = 0.0;
    values[9] = -1.0;
    let a = Tensor::dense(DType::Float32, &[3, 4, 1, 1], &values);
    for threads in [1, 3] {
        let text = |f| apply(&Linalg { f }, &[&a], threads).unwrap_err().to_string();
        assert!(
            text(LinalgFn::Inv).starts_with("inv: got a singular matrix at index [1, 3], want")
        );
        assert!(text(LinalgFn::Cholesky).contains("not positive definite at index [1, 3], want"));
    }
}

/// The elements beside the diagonal vanish late, after more steps for one eigenvalue than usual.
#[test]
fn symmetric_matrices_of_many_scales_have_eigenvalues() {
    let n = 120;
    let scales: [&dyn Fn(f64) -> f64; 3] =
        [&|i| 10f64.powf(-15.0 * i / 120.0), &|i| 10f64.powf(-2.5 * i), &|_| 1.0];
    let kernel = |i: usize, j: usize| (-0.5 * ((i as f64 - j as f64) * 10.0 / 164.0).powi(2)).exp();
    for (number, scale) in scales.iter().enumerate() {
        let drawn = noise(n * n, 5 + number as u64);
        let element = |i: usize, j: usize| match number {
            2 => kernel(i, j),
            _ => (drawn[i * n + j] + drawn[j * n + i]) * scale(i as f64) * scale(j as f64),
        };
        let values: Vec<f64> = (0..n * n).map(|at| element(at / n, at % n)).collect();
        let eigh = made(LinalgFn::Eigh, &Tensor::dense(DType::Float64, &[1, n, n], &values));
        let image = product(&values, &eigh[1], [1, n, n, n]);
        let scaled = eigh[1].iter().enumerate().map(|(at, v)| v * eigh[0][at % n]);
        let most = values.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        let scaled: Vec<f64> = scaled.map(|x| x / most).collect();
        let image: Vec<f64> = image.iter().map(|x| x / most).collect();
        assert_near(&image, &scaled, 1e-12, "A V");
    }
}
