//! Gather and its gradient, compared with naive loops.

use super::*;
use crate::ops::index::*;

const SHAPE: [usize; 3] = [3, 5, 70];
const N: usize = 3 * 5 * 70;
/// With repeats and negative indices.
const INDICES: [f64; 6] = [4.0, -1.0, 0.0, -3.0, 2.0, 2.0];

/// For each element of y, the element of x that it is a copy of.
fn sources(shape: &[usize], axis: usize, indices: &[f64]) -> Vec<usize> {
    let (outer, size) = (shape[..axis].iter().product::<usize>(), shape[axis]);
    let inner: usize = shape[axis + 1..].iter().product();
    let entry = |i: f64| if i < 0.0 { (i + size as f64) as usize } else { i as usize };
    let row = |o: usize, i: f64| (0..inner).map(move |k| (o * size + entry(i)) * inner + k);
    (0..outer).flat_map(|o| indices.iter().flat_map(move |&i| row(o, i))).collect()
}

/// In two axes, row-major and not, and in one.
fn indices(dtype: DType) -> [Tensor; 3] {
    let values = INDICES.map(|i| if dtype == DType::UInt8 { i.abs() } else { i });
    let [rows, columns] =
        [[3, 1], [1, 2]].map(|strides| Tensor::strided(dtype, &[2, 3], &strides, &values));
    [rows, columns, Tensor::strided(dtype, &[6], &[1], &values)]
}

#[test]
fn every_dtype_axis_and_layout() {
    let small = [3, 5, 5];
    let values: Vec<f64> = noise(75, 1).iter().map(|v| v * 50.0).collect();
    use DType::*;
    let int = [Int32, Int64, Int8, UInt8, Float32, Float16, BFloat16, Float64];
    for (d, dtype) in DType::ALL.into_iter().enumerate() {
        for (l, strides) in layouts(&small).iter().enumerate() {
            let x = Tensor::strided(dtype, &small, strides, &values);
            let (axis, by) = (1 + l % 2, int[(d + l) % 8]);
            for i in indices(by) {
                let gather = Gather { axis: axis as i64 };
                let got = apply_any_width(&gather, &[x.clone(), i.clone()]).unwrap();
                let from = sources(&small, axis, &i.values());
                let want: Vec<f64> = from.iter().map(|&s| x.values()[s]).collect();
                assert_eq!(got[0].values(), want, "{dtype} {axis} {by}");
            }
        }
    }
}

#[test]
fn images_stay_channels_last() {
    let nhwc = smallvec::smallvec![60, 1, 15, 3];
    let x = Meta { strides: nhwc, ..Meta::new(DType::Float32, [2, 3, 4, 5]) };
    let strides = |axis, indices: &[usize]| {
        let metas = Gather { axis }.infer(&[&x, &Meta::new(DType::Int32, indices)]).unwrap();
        metas[0].strides.to_vec()
    };
    assert_eq!(strides(2, &[6]), [90, 1, 15, 3]);
    assert_eq!(strides(3, &[7]), [84, 1, 21, 3]);
    assert_eq!(strides(1, &[2]), [40, 20, 5, 1], "channels are the innermost");
    assert_eq!(strides(2, &[1, 6]), [90, 30, 30, 5, 1], "another rank");
}

#[test]
fn shapes_of_results() {
    let x = Meta::new(DType::Float32, [4, 5, 6]);
    let shape = |axis, indices: &[usize]| {
        let metas = Gather { axis }.infer(&[&x, &Meta::new(DType::Int32, indices)]).unwrap();
        metas[0].shape.to_vec()
    };
    assert_eq!(shape(1, &[2, 3]), [4, 2, 3, 6]);
    assert_eq!(shape(-1, &[]), [4, 5]);
    assert_eq!(shape(0, &[0]), [0, 5, 6]);
    let grad = |axis, dy: &[usize], i: &[usize]| {
        let metas = [Meta::new(DType::Float32, dy), Meta::new(DType::Int32, i)];
        GatherGrad { axis, size: 9 }.infer(&[&metas[0], &metas[1]]).map(|m| m[0].shape.to_vec())
    };
    assert_eq!(grad(1, &[4, 2, 3, 6], &[2, 3]).unwrap(), [4, 9, 6]);
    assert_eq!(grad(-1, &[4, 5], &[]).unwrap(), [4, 5, 9]);
    assert!(grad(0, &[4, 2, 3, 6], &[2, 3]).is_err());
    assert!(grad(0, &[2], &[2, 3]).is_err());
}

#[test]
fn gradients_add_where_an_index_repeats() {
    for dtype in [DType::Float32, DType::Float64, DType::Float16, DType::BFloat16] {
        for (axis, &size) in SHAPE.iter().enumerate() {
            let i = Tensor::dense(DType::Int32, &[2, 3], &INDICES.map(|i| i % 3.0));
            let mut shape = SHAPE.to_vec();
            shape.splice(axis..axis + 1, [2, 3]);
            let n: usize = shape.iter().product();
            for strides in layouts(&shape) {
                let dy = Tensor::strided(dtype, &shape, &strides, &noise(n, 2));
                let grad = GatherGrad { axis: axis as i64, size };
                let got = apply_any_width(&grad, &[dy.clone(), i.clone()]).unwrap();
                let mut want = vec![0.0; N];
                let from = sources(&SHAPE, axis, &i.values());
                from.iter().zip(dy.values()).for_each(|(&s, v)| want[s] += v);
                let tolerance = match dtype {
                    DType::Float64 => 1e-15,
                    DType::Float32 => 1e-6,
                    DType::Float16 => 1e-3,
                    _ => 8e-3,
                };
                assert_near(&got[0].values(), &want, tolerance, "dx");
            }
        }
    }
}

#[test]
fn half_gradients_are_rounded_once() {
    // Adding one at a time in float16 would get stuck at 2048.
    let dy = Tensor::dense(DType::Float16, &[4096], &[1.0; 4096]);
    let i = Tensor::dense(DType::Int64, &[4096], &[0.0; 4096]);
    let got = apply_any_width(&GatherGrad { axis: 0, size: 2 }, &[dy, i]).unwrap();
    assert_eq!(got[0].values(), [4096.0, 0.0]);
}

#[test]
fn indices_are_checked_before_anything_is_written() {
    let x = Tensor::dense(DType::Float32, &[3, 2], &[0.0; 6]);
    for bad in [3.0, -4.0] {
        let i = Tensor::dense(DType::Int64, &[2], &[0.0, bad]);
        let got = apply_any_width(&Gather { axis: 0 }, &[x.clone(), i.clone()]).unwrap_err();
        assert!(matches!(got, Error::Index { index, size: 3, .. } if index == bad as i64));
        let dy = Tensor::dense(DType::Float32, &[2, 2], &[0.0; 4]);
        assert!(apply_any_width(&GatherGrad { axis: 0, size: 3 }, &[dy, i]).is_err());
    }
    let truth = Meta::new(DType::Bool, [2]);
    assert!(matches!(Gather { axis: 0 }.infer(&[&x.meta, &truth]), Err(Error::DType { .. })));
    assert!(matches!(
        Places { of: PlacesOf::Onehot, size: None, wraps: true }.infer(&[&truth]),
        Err(Error::DType { .. })
    ));
}

#[test]
fn the_first_wrong_one_of_many_indices_is_named() {
    let many = 40_000;
    let x = Tensor::dense(DType::Float32, &[5], &[0.0, 1.0, 2.0, 3.0, 4.0]);
    let good: Vec<f64> = (0..many).map(|i| (i * 7 % 10) as f64 - 5.0).collect();
    let gathered = |values: &[f64]| {
        let indices = Tensor::dense(DType::Float64, &[many], values);
        apply_any_width(&Gather { axis: 0 }, &[x.clone(), indices])
    };
    let want: Vec<f64> = good.iter().map(|i| i.rem_euclid(5.0)).collect();
    assert_eq!(gathered(&good).unwrap()[0].values(), want);
    for (first, later) in [(100, 101), (100, 300), (9_000, 39_999)] {
        let mut bad = good.clone();
        (bad[first], bad[later]) = (7.0, 0.5);
        assert!(matches!(gathered(&bad).unwrap_err(), Error::Index { index: 7, size: 5, .. }));
        (bad[first], bad[later]) = (0.5, 7.0);
        assert!(matches!(gathered(&bad).unwrap_err(), Error::Value { .. }));
        (bad[first], bad[later]) = (-6.0, 8.0);
        assert!(matches!(gathered(&bad).unwrap_err(), Error::Index { index: -6, .. }));
    }
}

#[test]
fn float_indices_are_whole_numbers_or_refused() {
    let x = Tensor::dense(DType::Float32, &[3, 2], &[0.0; 6]);
    let dy = Tensor::dense(DType::Float32, &[2, 2], &[0.0; 4]);
    for dtype in [DType::Float64, DType::Float32, DType::Float16, DType::BFloat16] {
        for bad in [0.5, 1.75, -0.5, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e30] {
            let i = Tensor::dense(dtype, &[2], &[1.0, bad]);
            let refused = [
                apply_any_width(&Gather { axis: 0 }, &[x.clone(), i.clone()]),
                apply_any_width(&GatherGrad { axis: 0, size: 3 }, &[dy.clone(), i.clone()]),
                apply_any_width(
                    &Places { of: PlacesOf::ScatterElements, size: Some(3), wraps: true },
                    std::slice::from_ref(&i),
                ),
                apply_any_width(
                    &Places { of: PlacesOf::Onehot, size: None, wraps: true },
                    std::slice::from_ref(&i),
                ),
            ];
            for got in refused {
                let error = got.unwrap_err();
                assert!(matches!(error, Error::Value { .. }), "{error}");
            }
        }
        let i = Tensor::dense(dtype, &[2], &[2.0, 7.0]);
        let got = apply_any_width(&Gather { axis: 0 }, &[x.clone(), i]).unwrap_err();
        assert!(matches!(got, Error::Index { index: 7, size: 3, .. }));
    }
}

#[test]
fn places_count_from_the_front() {
    let of = PlacesOf::ScatterElements;
    for i in indices(DType::Float32) {
        let places = |size| {
            apply_any_width(&Places { of, size, wraps: true }, std::slice::from_ref(&i)).unwrap()
        };
        let got = places(Some(5)).remove(0);
        assert_eq!(got.meta, Meta::new(DType::Int64, i.meta.shape.clone()));
        let want = i.values().into_iter().map(|i| if i < 0.0 { i + 5.0 } else { i });
        assert_eq!(got.values(), want.collect::<Vec<_>>());
        assert_eq!(places(None)[0].values(), i.values());
    }
    let i = Tensor::dense(DType::Int8, &[1], &[5.0]);
    let got = apply_any_width(&Places { of, size: Some(5), wraps: true }, &[i]);
    assert!(matches!(got, Err(Error::Index { index: 5, size: 5, .. })));
    let i = Tensor::dense(DType::Int8, &[1], &[-1.0]);
    let got = apply_any_width(&Places { of, size: Some(5), wraps: false }, &[i]);
    assert!(matches!(got, Err(Error::Index { index: -1, size: 5, .. })));
}

#[test]
fn nothing_to_gather() {
    let none = Tensor::dense(DType::Int32, &[0], &[]);
    let x = Tensor::dense(DType::Float32, &[3, 2], &[1.0; 6]);
    assert!(
        apply_any_width(&Gather { axis: 0 }, &[x, none.clone()]).unwrap()[0].values().is_empty()
    );
    let dy = Tensor::dense(DType::Float32, &[0, 2], &[]);
    let got = apply_any_width(&GatherGrad { axis: 0, size: 2 }, &[dy, none.clone()]).unwrap();
    assert_eq!(got[0].values(), [0.0; 4]);
    let empty = Tensor::dense(DType::Float32, &[0, 2], &[]);
    assert!(apply_any_width(&Gather { axis: 0 }, &[empty.clone(), none]).is_ok());
    let one = Tensor::dense(DType::Int32, &[1], &[0.0]);
    assert!(matches!(
        apply_any_width(&Gather { axis: 0 }, &[empty, one]),
        Err(Error::Index { .. })
    ));
}
