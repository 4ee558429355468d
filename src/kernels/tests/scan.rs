//! Running sums, products and maxima, compared with naive loops.

use super::*;
use crate::ops::scan::*;

fn rows(shape: &[usize], axis: usize) -> impl Iterator<Item = Vec<usize>> {
    let inner: usize = shape[axis + 1..].iter().product();
    let outer: usize = shape[..axis].iter().product();
    let extent = shape[axis];
    (0..outer * inner).map(move |row| {
        let first = row / inner * extent * inner + row % inner;
        (0..extent).map(|i| first + i * inner).collect()
    })
}

/// `least` is the least number of the dtype.
fn naive(op: &Scan, shape: &[usize], values: &[f64], least: f64) -> Vec<f64> {
    let mut made = values.to_vec();
    for mut row in rows(shape, op.axis as usize) {
        if op.reverse {
            row.reverse();
        }
        let (mut total, join): (f64, fn(f64, f64) -> f64) = match op.f {
            ScanFn::Sum => (0.0, |a, b| a + b),
            ScanFn::Prod => (1.0, |a, b| a * b),
            ScanFn::Max => (least, f64::max),
        };
        for place in row {
            let before = total;
            total = join(total, values[place]);
            made[place] = if op.exclusive { before } else { total };
        }
    }
    made
}

fn check(dtype: DType, shape: &[usize], strides: &[isize], op: &Scan) {
    let count: usize = shape.iter().product();
    let scale = if dtype.is_float() { 1.0 } else { 3.0 };
    let x = Tensor::strided(
        dtype,
        shape,
        strides,
        &noise(count, 3).iter().map(|v| v * scale).collect::<Vec<_>>(),
    );
    let y = apply_any_width(op, std::slice::from_ref(&x)).unwrap().remove(0);
    assert_eq!(y.meta, x.meta.like(if dtype.is_float() { dtype } else { DType::Int64 }));
    let least = if dtype.is_float() { f64::NEG_INFINITY } else { i64::MIN as f64 };
    assert_near(&y.values(), &naive(op, shape, &x.values(), least), tolerance(dtype), "y");
}

#[test]
fn any_axis_of_any_layout() {
    for shape in [[3, 5, 4], [2, 300, 9], [7, 2, 270]] {
        for (axis, strides) in
            (0..3).flat_map(|axis| layouts(&shape).into_iter().map(move |s| (axis, s)))
        {
            for (exclusive, reverse) in [(false, false), (true, true)] {
                let op = Scan { f: ScanFn::Sum, axis, exclusive, reverse };
                check(DType::Float32, &shape, &strides, &op);
            }
        }
    }
}

#[test]
fn every_dtype_and_form() {
    for dtype in DType::COMPUTED {
        for f in [ScanFn::Sum, ScanFn::Prod, ScanFn::Max] {
            for (exclusive, reverse) in [(false, false), (false, true), (true, false), (true, true)]
            {
                for axis in [0, 1] {
                    check(dtype, &[9, 11], &[11, 1], &Scan { f, axis, exclusive, reverse });
                }
            }
        }
    }
}

#[test]
fn long_rows_are_summed_in_segments() {
    for (exclusive, reverse) in [(false, false), (false, true), (true, false), (true, true)] {
        let op = Scan { f: ScanFn::Sum, axis: 1, exclusive, reverse };
        for (rows, length) in [(1, 4 * 4096), (1, 100_001), (3, 20_000), (7, 16_385), (8, 20_000)] {
            for dtype in [DType::Float32, DType::Float64, DType::Int8] {
                check(dtype, &[rows, length], &[length as isize + 3, 1], &op);
                check(dtype, &[rows, length], &[1, rows as isize], &op);
            }
        }
    }
    let values: Vec<f64> =
        (0..40_000).map(|i| if i == 9000 { f64::INFINITY } else { 1.0 }).collect();
    let x = Tensor::dense(DType::Float32, &[1, 40_000], &values);
    let op = Scan { f: ScanFn::Sum, axis: 1, exclusive: false, reverse: false };
    let y = apply_any_width(&op, &[x]).unwrap()[0].values();
    assert!(y[8999] == 9000.0 && y[9000..].iter().all(|y| *y == f64::INFINITY));
}

#[test]
fn sums_are_wide() {
    let op = Scan { f: ScanFn::Sum, axis: 0, exclusive: false, reverse: false };
    let x = Tensor::dense(DType::Float16, &[5000], &vec![1.0; 5000]);
    let y = apply(&op, &[&x], 1).unwrap().remove(0);
    assert_eq!(y.values()[4999], 5000.0);
    let large = vec![f64::powi(2.0, 24), 1.0, 1.0];
    let y = apply(&op, &[&Tensor::dense(DType::Float32, &[3], &large)], 1).unwrap().remove(0);
    assert_eq!(y.values()[2], f64::powi(2.0, 24) + 2.0);
}

#[test]
fn refuses_other_axes() {
    let op = Scan { f: ScanFn::Prod, axis: 1, exclusive: false, reverse: false };
    assert!(matches!(op.infer(&[&Meta::new(DType::Float32, [3])]), Err(Error::Value { .. })));
    assert!(matches!(op.infer(&[]), Err(Error::Arity { .. })));
}
