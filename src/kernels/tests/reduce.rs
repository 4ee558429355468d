//! Reductions compared with naive loops in float64.

use super::*;
use crate::ops::reduce::*;

fn reduce(f: ReduceFn, axes: &[i64], keepdims: bool) -> Reduce {
    Reduce { f, axes: axes.into(), keepdims }
}

/// The values of each output, in row-major order, and the output's shape without reduced axes.
fn groups(x: &Tensor, axes: &[usize]) -> Vec<Vec<f64>> {
    let shape = &x.meta.shape;
    let kept: Vec<usize> = (0..shape.rank()).filter(|d| !axes.contains(d)).collect();
    let count: usize = kept.iter().map(|&d| shape[d]).product();
    let mut found = vec![Vec::new(); count];
    for (i, value) in x.values().into_iter().enumerate() {
        let mut rest = i;
        let mut index = vec![0; shape.rank()];
        for d in (0..shape.rank()).rev() {
            (index[d], rest) = (rest % shape[d], rest / shape[d]);
        }
        found[kept.iter().fold(0, |at, &d| at * shape[d] + index[d])].push(value);
    }
    found
}

fn place(values: &[f64], better: impl Fn(f64, f64) -> bool) -> f64 {
    let mut best = 0;
    for (i, &v) in values.iter().enumerate() {
        let b = values[best];
        if better(v, b) || v.is_nan() && !b.is_nan() {
            best = i;
        }
    }
    best as f64
}

fn expected(f: ReduceFn, dtype: DType, values: &[f64]) -> f64 {
    let total = match f {
        ReduceFn::Sum => values.iter().sum(),
        ReduceFn::Prod => values.iter().product(),
        ReduceFn::Mean => values.iter().sum::<f64>() / values.len() as f64,
        ReduceFn::Argmax => place(values, |a, b| a > b),
        ReduceFn::Argmin => place(values, |a, b| a < b),
        ReduceFn::Max => values[place(values, |a, b| a > b) as usize],
        ReduceFn::Min => values[place(values, |a, b| a < b) as usize],
        ReduceFn::Any => values.iter().any(|&v| v != 0.0) as u8 as f64,
        ReduceFn::All => values.iter().all(|&v| v != 0.0) as u8 as f64,
    };
    // The dtype makes integers wrap, and some floats infinite.
    let is_int = dtype.is_int();
    crate::dispatch!(dtype, T => {
        let element: T = if is_int { T::from_i64(total as i64) } else { T::from_f64(total) };
        Element::to_f64(element)
    })
}

fn input(dtype: DType, shape: &[usize], strides: &[isize], seed: u64) -> Tensor {
    let n = shape.iter().product();
    let scale = if dtype.is_float() { 1.0 } else { 9.0 };
    let values: Vec<f64> = noise(n, seed).iter().map(|v| (v * scale).abs()).collect();
    Tensor::strided(dtype, shape, strides, &values)
}

fn check(f: ReduceFn, x: &Tensor, axes: &[i64], keepdims: bool) {
    let dtype = x.meta.dtype;
    if f == ReduceFn::Mean && !dtype.is_float() {
        return;
    }
    let reduce = reduce(f, axes, keepdims);
    // The work is distributed in the same way for all dtypes.
    let got = match dtype {
        DType::Float32 => apply_any_width(&reduce, std::slice::from_ref(x)),
        _ => apply(&reduce, &[x], 1),
    };
    let got = got.unwrap();
    let axes = x.meta.shape.axes("", axes).unwrap();
    let result = f.result(dtype);
    let want: Vec<f64> = groups(x, &axes).iter().map(|g| expected(f, result, g)).collect();
    let tolerance = match dtype {
        DType::Float16 => 1e-3,
        DType::BFloat16 => 8e-3,
        DType::Float32 => 2e-7,
        _ => 1e-14,
    };
    assert_near(&got[0].values(), &want, tolerance, reduce.name());
}

#[test]
fn every_reduction_of_every_dtype_and_layout() {
    let shape = [3, 37, 5];
    for dtype in DType::COMPUTED {
        for strides in layouts(&shape) {
            let x = input(dtype, &shape, &strides, 1);
            for f in ReduceFn::ALL {
                let axes: &[&[i64]] = match f.is_place() {
                    true => &[&[], &[0], &[1], &[-1]],
                    false => &[&[], &[0], &[1], &[-1], &[0, 2], &[1, 2], &[0, -2]],
                };
                axes.iter().for_each(|axes| check(f, &x, axes, axes.len() == 1));
            }
        }
    }
}

#[test]
fn many_blocks_rows_and_columns() {
    for (shape, axes) in [
        (vec![300_000], vec![0]),
        (vec![2, 30_000], vec![1]),
        (vec![30_000, 12], vec![0]),
        (vec![70, 3, 2100], vec![0]),
        (vec![5000, 3], vec![1]),
        (vec![40, 9, 300], vec![0, 2]),
    ] {
        let strides = Shape::from(shape.as_slice()).contiguous();
        for dtype in [DType::Float32, DType::Float16, DType::Int64, DType::UInt8] {
            let x = input(dtype, &shape, &strides, 2);
            for f in [ReduceFn::Sum, ReduceFn::Max, ReduceFn::Any] {
                check(f, &x, &axes, false);
            }
            if axes.len() == 1 {
                check(ReduceFn::Argmin, &x, &axes, false);
            }
        }
    }
}

#[test]
fn a_long_float32_sum_is_accurate() {
    let n = 10_000_000;
    let x = Tensor::dense(DType::Float32, &[n], &vec![0.1; n]);
    let sum = reduce(ReduceFn::Sum, &[], false);
    let got = apply_any_width(&sum, &[x]).unwrap()[0].values()[0];
    let want = 0.1f32 as f64 * n as f64;
    assert!((got / want - 1.0).abs() < 1e-7, "{got} {want}");
}

#[test]
fn nan_goes_through() {
    let values = [1.0, f64::NAN, 3.0, f64::NAN, -1.0, f64::NEG_INFINITY];
    for dtype in [DType::Float32, DType::Float64, DType::Float16] {
        let x = Tensor::dense(dtype, &[6], &values);
        let at = |f| {
            let reduce = reduce(f, &[], false);
            apply_any_width(&reduce, std::slice::from_ref(&x)).unwrap()[0].values()[0]
        };
        assert!(at(ReduceFn::Max).is_nan() && at(ReduceFn::Min).is_nan());
        assert!(at(ReduceFn::Sum).is_nan());
        assert_eq!([at(ReduceFn::Argmax), at(ReduceFn::Argmin)], [1.0, 1.0]);
        assert_eq!([at(ReduceFn::Any), at(ReduceFn::All)], [1.0, 1.0]);
    }
    let low = Tensor::dense(DType::Float32, &[3], &[f64::NEG_INFINITY; 3]);
    let argmax = reduce(ReduceFn::Argmax, &[], false);
    assert_eq!(apply_any_width(&argmax, &[low]).unwrap()[0].values(), [0.0]);
}

#[test]
fn nothing_has_numpy_s_values() {
    let run = |f, shape: &[usize], axis| {
        let x = Tensor::dense(DType::Float32, shape, &[]);
        let reduce = reduce(f, &[axis], false);
        apply_any_width(&reduce, &[x]).map(|got| got[0].values())
    };
    assert_eq!(run(ReduceFn::Sum, &[0, 2], 0).unwrap(), [0.0, 0.0]);
    assert_eq!(run(ReduceFn::Prod, &[0, 2], 0).unwrap(), [1.0, 1.0]);
    assert_eq!(run(ReduceFn::Any, &[0, 2], 0).unwrap(), [0.0, 0.0]);
    assert_eq!(run(ReduceFn::All, &[0, 2], 0).unwrap(), [1.0, 1.0]);
    assert!(run(ReduceFn::Mean, &[0, 1], 0).unwrap()[0].is_nan());
    for f in [ReduceFn::Max, ReduceFn::Min, ReduceFn::Argmax, ReduceFn::Argmin] {
        assert!(matches!(run(f, &[0, 2], 0), Err(Error::Value { .. })));
        assert!(run(f, &[0, 2], 1).unwrap().is_empty());
    }
}

#[test]
fn integers_are_summed_in_int64() {
    let sum = reduce(ReduceFn::Sum, &[], true);
    let x = Tensor::dense(DType::Int8, &[3], &[100.0, 100.0, 1.0]);
    assert_eq!(apply_any_width(&sum, &[x]).unwrap()[0].values(), [201.0]);
    let x = Tensor::dense(DType::Bool, &[2, 2], &[1.0, 1.0, 0.0, 1.0]);
    let got = apply_any_width(&sum, &[x]).unwrap();
    assert_eq!(got[0].values(), [3.0]);
    assert_eq!(got[0].meta, Meta::new(DType::Int64, [1, 1]));
}

#[test]
fn expanded_inputs_and_scalars() {
    let mut x = Tensor::dense(DType::Float32, &[1], &[2.0]);
    x.meta = Meta { strides: smallvec::smallvec![0, 0], ..Meta::new(DType::Float32, [40, 70]) };
    for axes in [vec![], vec![0], vec![1]] {
        check(ReduceFn::Sum, &x, &axes, false);
    }
    let scalar = Tensor::dense(DType::Float32, &[], &[3.0]);
    check(ReduceFn::Argmax, &scalar, &[], true);
    let mean = reduce(ReduceFn::Mean, &[], false);
    assert!(matches!(mean.infer(&[&Meta::new(DType::Int32, [2])]), Err(Error::DType { .. })));
    let argmax = reduce(ReduceFn::Argmax, &[0, 1], false);
    assert!(argmax.infer(&[&Meta::new(DType::Int32, [2, 2, 2])]).is_err());
}
