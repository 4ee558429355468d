//! Cross entropy and its gradient, compared with naive loops in float64.

use super::*;
use crate::ops::cross_entropy::*;

const FLOATS: [DType; 4] = [DType::Float32, DType::Float64, DType::Float16, DType::BFloat16];

fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::Float64 => 1e-13,
        DType::Float32 => 1e-6,
        DType::Float16 => 2e-3,
        _ => 1e-2,
    }
}

/// The loss, and the gradient for dloss = 2, of rows `x` with weights `w`.
fn expected(x: &[f64], w: &[f64], rows: usize) -> (f64, Vec<f64>) {
    let classes = x.len() / rows;
    let (mut loss, mut dx) = (0.0, Vec::new());
    for (x, w) in x.chunks(classes).zip(w.chunks(classes)) {
        let most = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let lse = most + x.iter().map(|v| (v - most).exp()).sum::<f64>().ln();
        let total: f64 = w.iter().sum();
        loss += x.iter().zip(w).map(|(x, w)| w / total * (lse - x)).sum::<f64>() / rows as f64;
        let n = rows as f64;
        dx.extend(x.iter().zip(w).map(|(x, w)| 2.0 * ((x - lse).exp() - w / total) / n));
    }
    (loss, dx)
}

fn run(x: &Tensor, t: &Tensor) -> Result<(f64, Vec<f64>)> {
    run_ignoring(None, x, t)
}

fn run_ignoring(ignored: Option<i64>, x: &Tensor, t: &Tensor) -> Result<(f64, Vec<f64>)> {
    let mut forward = apply_any_width(&SoftmaxCrossEntropy { ignored }, &[x.clone(), t.clone()])?;
    let lse = forward.pop().unwrap();
    let dloss = Tensor::one(x.meta.dtype, 2.0);
    let inputs = [dloss, x.clone(), t.clone(), lse];
    let dx = apply_any_width(&SoftmaxCrossEntropyGrad { ignored }, &inputs)?.remove(0);
    assert_eq!(dx.meta, x.meta.like(x.meta.dtype));
    Ok((forward[0].values()[0], dx.values()))
}

fn check(x: &Tensor, t: &Tensor, weights: &[f64]) {
    let (loss, dx) = run(x, t).unwrap();
    let (want, want_dx) = expected(&x.values(), weights, x.meta.shape[0]);
    assert_near(&[loss], &[want], tolerance(x.meta.dtype), "loss");
    assert_near(&dx, &want_dx, tolerance(x.meta.dtype), "dx");
}

#[test]
fn class_indices_of_every_dtype() {
    let (rows, classes) = (7, 33);
    let labels: Vec<f64> = (0..rows).map(|r| ((r * 5) % classes) as f64).collect();
    let mut weights = vec![0.0; rows * classes];
    labels.iter().enumerate().for_each(|(r, &l)| weights[r * classes + l as usize] = 1.0);
    let values: Vec<f64> = noise(rows * classes, 1).iter().map(|v| v * 9.0).collect();
    for dtype in FLOATS {
        for strides in layouts(&[rows, classes]) {
            let x = Tensor::strided(dtype, &[rows, classes], &strides, &values);
            check(&x, &Tensor::strided(DType::Int32, &[rows, 1], &[2, 1], &labels), &weights);
        }
    }
    let x = Tensor::dense(DType::Float32, &[rows, classes], &values);
    for dtype in DType::COMPUTED.into_iter().filter(|&d| d != DType::Bool) {
        check(&x, &Tensor::strided(dtype, &[rows], &[-1], &labels), &weights);
    }
}

#[test]
fn weights_need_not_be_normalised() {
    for (rows, classes) in [(5, 12), (2, 5000)] {
        let n = rows * classes;
        for dtype in FLOATS {
            let x = Tensor::dense(dtype, &[rows, classes], &noise(n, 1));
            let weights: Vec<f64> = noise(n, 2).iter().map(|v| v.abs() + 0.1).collect();
            let t = Tensor::strided(dtype, &[rows, classes], &[1, rows as isize], &weights);
            check(&x, &t, &t.values());
        }
    }
}

#[test]
fn a_class_of_weight_zero_may_be_impossible() {
    let x = Tensor::dense(DType::Float32, &[1, 3], &[0.0, f64::NEG_INFINITY, 0.0]);
    let t = Tensor::dense(DType::Float32, &[1, 3], &[1.0, 0.0, 1.0]);
    let (loss, dx) = self::run(&x, &t).unwrap();
    assert_near(&[loss], &[2f64.ln()], 1e-6, "loss");
    assert_near(&dx, &[0.0; 3], 1e-6, "dx");
}

#[test]
fn labels_are_checked() {
    let x = Tensor::dense(DType::Float32, &[2, 3], &[0.0; 6]);
    let run = |dtype, labels: [f64; 2]| run(&x, &Tensor::dense(dtype, &[2], &labels)).unwrap_err();
    assert!(matches!(run(DType::Int64, [0.0, 3.0]), Error::Index { index: 3, size: 3, .. }));
    assert!(matches!(run(DType::Int32, [-1.0, 0.0]), Error::Index { index: -1, .. }));
    assert!(matches!(run(DType::Float32, [0.5, 0.0]), Error::Value { .. }));
    assert!(matches!(run(DType::Float64, [f64::NAN, 0.0]), Error::Value { .. }));
    assert!(matches!(run(DType::Float64, [f64::INFINITY, 0.0]), Error::Value { .. }));
    assert!(matches!(run(DType::Bool, [1.0, 0.0]), Error::DType { .. }));
    let t = Tensor::dense(DType::Float64, &[2, 3], &[0.0; 6]);
    assert!(matches!(self::run(&x, &t), Err(Error::DType { .. })));
    let t = Tensor::dense(DType::Int32, &[3], &[0.0; 3]);
    assert!(matches!(self::run(&x, &t), Err(Error::Shape { .. })));
}

#[test]
fn large_logits_keep_their_gradients_exact() {
    let x = Tensor::dense(DType::Float32, &[1, 3], &[30000.0, 30001.0, 29999.5]);
    check(&x, &Tensor::dense(DType::Int32, &[1], &[1.0]), &[0.0, 1.0, 0.0]);
}

#[test]
fn no_rows_have_no_mean() {
    let x = Tensor::dense(DType::Float32, &[0, 3], &[]);
    let (loss, dx) = run(&x, &Tensor::dense(DType::Int32, &[0], &[])).unwrap();
    assert!(loss.is_nan() && dx.is_empty());
}

#[test]
fn rows_to_ignore_do_not_count() {
    let (rows, classes) = (5, 9);
    let mut values = noise(rows * classes, 1);
    values[classes] = f64::NAN; // in a row to ignore
    for ignored in [-100, 2] {
        for dtype in FLOATS {
            let x = Tensor::dense(dtype, &[rows, classes], &values);
            let labels = [3.0, ignored as f64, 0.0, ignored as f64, 8.0];
            let t = Tensor::dense(DType::Int64, &[rows], &labels);
            let (loss, dx) = run_ignoring(Some(ignored), &x, &t).unwrap();
            let held = x.values();
            let kept: Vec<f64> =
                [0, 2, 4].iter().flat_map(|r| &held[r * classes..][..classes]).copied().collect();
            let mut weights = vec![0.0; 3 * classes];
            [3, classes, 2 * classes + 8].into_iter().for_each(|place| weights[place] = 1.0);
            let (want, want_dx) = expected(&kept, &weights, 3);
            assert_near(&[loss], &[want], tolerance(dtype), "loss");
            for (row, dx) in dx.chunks(classes).enumerate() {
                let want =
                    if row % 2 == 0 { &want_dx[row / 2 * classes..][..classes] } else { &[0.0; 9] };
                assert_near(dx, want, tolerance(dtype), "dx");
            }
        }
    }
    let x = Tensor::dense(DType::Float32, &[2, 3], &[0.0; 6]);
    let t = |labels| Tensor::dense(DType::Int64, &[2], labels);
    assert!(run_ignoring(Some(-1), &x, &t(&[-1.0; 2])).unwrap().0.is_nan());
    let refused = run_ignoring(Some(-1), &x, &t(&[-1.0, -2.0])).unwrap_err();
    assert!(matches!(refused, Error::Index { index: -2, .. }));
}
