//! Softmax and its gradient, compared with naive loops in float64.

use super::*;
use crate::ops::softmax::*;

fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::Float64 => 1e-14,
        DType::Float32 => 2e-6,
        DType::Float16 => 4e-3,
        _ => 4e-2,
    }
}

/// Applies `f` to each row along an axis of row-major values.
fn along(shape: &[usize], axis: usize, values: &mut [f64], f: impl Fn(usize, &mut Vec<f64>)) {
    let inner: usize = shape[axis + 1..].iter().product();
    let outer: usize = shape[..axis].iter().product();
    let place = |o: usize, i: usize, k: usize| (o * shape[axis] + i) * inner + k;
    for o in 0..outer {
        for k in 0..inner {
            let mut row: Vec<f64> = (0..shape[axis]).map(|i| values[place(o, i, k)]).collect();
            f(o * inner + k, &mut row);
            (0..shape[axis]).for_each(|i| values[place(o, i, k)] = row[i]);
        }
    }
}

fn softmax(log: bool, row: &mut [f64]) {
    let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = row.iter().map(|v| (v - most).exp()).sum();
    for v in row {
        *v = if log { *v - most - total.ln() } else { (*v - most).exp() / total };
    }
}

fn rows(shape: &[usize], axis: usize, values: &[f64]) -> Vec<Vec<f64>> {
    let found = std::cell::RefCell::new(Vec::new());
    along(shape, axis, &mut values.to_vec(), |_, row| found.borrow_mut().push(row.clone()));
    found.into_inner()
}

fn check(dtype: DType, shape: &[usize], axis: usize, strides: &[isize], log: bool) {
    let n = shape.iter().product();
    let values: Vec<f64> = noise(n, 1).iter().map(|v| v * 8.0).collect();
    let x = Tensor::strided(dtype, shape, strides, &values);
    let forward = Softmax { axis: axis as i64, log };
    let y = apply_any_width(&forward, std::slice::from_ref(&x)).unwrap().remove(0);
    assert_eq!(y.meta, x.meta.like(dtype));
    let mut want = x.values();
    along(shape, axis, &mut want, |_, row| softmax(log, row));
    assert_near(&y.values(), &want, tolerance(dtype), "y");

    let dy = Tensor::strided(dtype, shape, strides, &noise(n, 2));
    let grad = SoftmaxGrad { axis: axis as i64, log };
    let dx = apply_any_width(&grad, &[dy.clone(), y.clone()]).unwrap().remove(0);
    let ys = rows(shape, axis, &y.values());
    let mut want = dy.values();
    along(shape, axis, &mut want, |r, row| {
        let total: f64 = row.iter().zip(&ys[r]).map(|(d, y)| d * if log { 1.0 } else { *y }).sum();
        for (d, y) in row.iter_mut().zip(&ys[r]) {
            *d = if log { *d - y.exp() * total } else { y * (*d - total) };
        }
    });
    assert_near(&dx.values(), &want, tolerance(dtype), "dx");
}

#[test]
fn any_axis_dtype_and_layout() {
    let shape = [3, 21, 10];
    for dtype in [DType::Float32, DType::Float64, DType::Float16, DType::BFloat16] {
        for strides in layouts(&shape) {
            (0..3).for_each(|axis| check(dtype, &shape, axis, &strides, axis == 1));
        }
    }
    let columns = [([5000, 70], 0), ([1024, 70], 0), ([1025, 9], 0), ([70, 2], 0)];
    let rows = [([2, 70_000], 1), ([2, 5000], 1), ([9, 70], 1), ([70, 48], 1), ([7, 2], 1)];
    for (shape, axis) in columns.into_iter().chain(rows) {
        let strides = [shape[1] as isize, 1];
        for log in [false, true] {
            check(DType::Float32, &shape, axis, &strides, log);
        }
    }
}

#[test]
fn large_values_and_infinities() {
    let x = [1e4, 1e4 - 1.0, -1e4, f64::NEG_INFINITY];
    let run = |axis, shape: &[usize], values: &[f64], log| {
        let x = Tensor::dense(DType::Float32, shape, values);
        apply_any_width(&Softmax { axis, log }, &[x]).unwrap()[0].values()
    };
    let p = 1.0 / (1.0 + (-1f64).exp());
    assert_near(&run(0, &[4], &x, false), &[p, 1.0 - p, 0.0, 0.0], 1e-6, "y");
    let log = run(0, &[4], &x, true);
    assert_near(&log[..2], &[p.ln(), (1.0 - p).ln()], 1e-6, "log y");
    assert_eq!(log[3], f64::NEG_INFINITY);
    for bad in [f64::NEG_INFINITY, f64::INFINITY, f64::NAN] {
        for (axis, shape) in [(1, [9, 2]), (0, [2, 9])] {
            for log in [false, true] {
                assert!(run(axis, &shape, &[bad; 18], log).iter().all(|v| v.is_nan()));
            }
        }
    }
    assert!(run(0, &[2], &[f64::NAN, 0.0], false).iter().all(|v| v.is_nan()));
}

#[test]
fn empty_tensors_and_bad_inputs() {
    for (shape, axis) in [([0, 3], 1), ([0, 3], 0), ([3, 0], 1), ([9, 0], 0), ([0, 9], 0)] {
        let x = Tensor::dense(DType::Float32, &shape, &[]);
        assert!(apply_any_width(&Softmax { axis, log: false }, std::slice::from_ref(&x)).is_ok());
        assert!(apply_any_width(&SoftmaxGrad { axis, log: true }, &[x.clone(), x]).is_ok());
    }
    let softmax = Softmax { axis: 2, log: false };
    let meta = |dtype| Meta::new(dtype, [2, 3]);
    assert!(matches!(softmax.infer(&[&meta(DType::Float32)]), Err(Error::Value { .. })));
    let softmax = Softmax { axis: 0, log: false };
    assert!(matches!(softmax.infer(&[&meta(DType::Int32)]), Err(Error::DType { .. })));
}
