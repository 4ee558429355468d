//! Sorting, compared with the standard library's stable sort.

use super::*;
use crate::ops::sort::*;

/// The places of a row's elements in order, NaN greatest.
fn places(row: &[f64], descending: bool) -> Vec<usize> {
    let mut places: Vec<usize> = (0..row.len()).collect();
    let rank = |i: usize| (row[i].is_nan(), if row[i].is_nan() { 0.0 } else { row[i] });
    places.sort_by(|&a, &b| {
        let order = rank(a).partial_cmp(&rank(b)).unwrap();
        if descending { order.reverse() } else { order }
    });
    places
}

fn check(dtype: DType, shape: [usize; 2], strides: &[isize], op: &Sort, values: &[f64]) {
    let x = Tensor::strided(dtype, &shape, strides, values);
    let made = apply_any_width(op, std::slice::from_ref(&x)).unwrap();
    let (x, values, indices) = (x.values(), made[0].values(), made[1].values());
    let [n, m] = shape;
    let (rows, step, extent) = if op.axis == 0 { (m, m, n) } else { (n, 1, m) };
    let count = op.count.unwrap_or(extent);
    for r in 0..rows {
        let (from, to) = if op.axis == 0 { (r, r) } else { (r * m, r * count) };
        let row: Vec<f64> = (0..extent).map(|i| x[from + i * step]).collect();
        for (i, place) in places(&row, op.descending).into_iter().take(count).enumerate() {
            assert_eq!(indices[to + i * step], place as f64, "{dtype} {op:?}");
            assert_eq!(values[to + i * step].to_bits(), row[place].to_bits());
        }
    }
}

/// Few distinct values, zeros of both signs, NaN and infinities among them.
fn mixed(count: usize) -> Vec<f64> {
    let special = [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    let draw = |(i, v): (usize, &f64)| if i % 7 < 5 { (v * 8.0).round() } else { special[i % 5] };
    noise(count, 5).iter().enumerate().map(draw).collect()
}

#[test]
fn stable_in_any_layout_and_either_direction() {
    for shape in [[3, 5], [40, 2000], [2000, 3]] {
        let values = mixed(shape[0] * shape[1]);
        for strides in layouts(&shape) {
            for (axis, descending, count) in
                [(0, false, None), (1, true, None), (1, false, Some(2)), (0, true, Some(3))]
            {
                let op = Sort { axis, descending, count };
                check(DType::Float32, shape, &strides, &op, &values);
            }
        }
    }
}

#[test]
fn every_dtype() {
    for dtype in DType::COMPUTED {
        let numbers: Vec<f64> = noise(6000, 2).iter().map(|v| (v * 50.0).round()).collect();
        let values = if dtype.is_float() { mixed(6000) } else { numbers };
        for (descending, count) in
            [(false, None), (true, None), (true, Some(1)), (false, Some(700))]
        {
            check(dtype, [2, 3000], &[3000, 1], &Sort { axis: 1, descending, count }, &values);
        }
    }
}

#[test]
fn refuses_more_than_there_are() {
    let op = Sort { axis: 0, descending: false, count: Some(4) };
    assert!(matches!(op.infer(&[&Meta::new(DType::Float32, [3])]), Err(Error::Value { .. })));
    assert!(matches!(op.infer(&[&Meta::new(DType::Float32, [])]), Err(Error::Value { .. })));
    assert_eq!(op.infer(&[&Meta::new(DType::Int8, [5])]).unwrap()[1], Meta::new(DType::Int64, [4]));
}
