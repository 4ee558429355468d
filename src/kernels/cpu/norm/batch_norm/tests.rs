use crate::dtype::DType;
use crate::error::Error;
use crate::kernels::testing::{Random, Tensor, apply, assert_near, tolerance};
use crate::ops::binary::{Binary, BinaryFn};
use crate::ops::norm::{
    BatchNorm, BatchNormGrad, BatchNormInference, BatchNormInferenceGrad, RunningAverage,
};
use crate::ops::normalize::{BatchNormReluGrad, BatchNormStatistics, Normalize};
use crate::ops::unary::{Unary, UnaryFn, UnaryGrad};
use crate::ops::{Family, Kind, Meta, Real};

const EPS: Real = Real(1e-3);
const FLOATS: [DType; 4] = [DType::Float32, DType::Float64, DType::Float16, DType::BFloat16];

/// The indices of each channel's elements in row-major order.
fn channels(shape: &[usize]) -> Vec<Vec<usize>> {
    let inner: usize = shape[2..].iter().product();
    let places = |c: usize| {
        let plane = move |n: usize| (0..inner).map(move |i| (n * shape[1] + c) * inner + i);
        (0..shape[0]).flat_map(plane).collect()
    };
    (0..shape[1]).map(places).collect()
}

/// Plain loops: y, mean and variance.
fn normalized(x: &[f64], shape: &[usize], scale: &[f64], bias: &[f64]) -> [Vec<f64>; 3] {
    let mut y = x.to_vec();
    let (mut means, mut vars) = (Vec::new(), Vec::new());
    for (c, places) in channels(shape).into_iter().enumerate() {
        let n = places.len() as f64;
        let mean = places.iter().map(|&i| x[i]).sum::<f64>() / n;
        let var = places.iter().map(|&i| (x[i] - mean).powi(2)).sum::<f64>() / n;
        for i in places {
            y[i] = (x[i] - mean) / (var + EPS.0).sqrt() * scale[c] + bias[c];
        }
        means.push(mean);
        vars.push(var);
    }
    [y, means, vars]
}

/// Plain loops: dx, dscale and dbias, given mean and variance.
fn gradients(
    [dy, x]: [&[f64]; 2],
    shape: &[usize],
    [scale, mean, var]: [&[f64]; 3],
    constant: bool,
) -> [Vec<f64>; 3] {
    let (mut dx, mut dscale, mut dbias) = (dy.to_vec(), Vec::new(), Vec::new());
    for (c, places) in channels(shape).into_iter().enumerate() {
        let (n, inverse) = (places.len() as f64, 1.0 / (var[c] + EPS.0).sqrt());
        let normal = |i: usize| (x[i] - mean[c]) * inverse;
        let of_dy: f64 = places.iter().map(|&i| dy[i]).sum();
        let of_product: f64 = places.iter().map(|&i| dy[i] * normal(i)).sum();
        for i in places {
            let less = if constant { 0.0 } else { (of_dy + normal(i) * of_product) / n };
            dx[i] = scale[c] * inverse * (dy[i] - less);
        }
        dscale.push(of_product);
        dbias.push(of_dy);
    }
    [dx, dscale, dbias]
}

fn wide(dtype: DType) -> DType {
    if dtype == DType::Float64 { dtype } else { DType::Float32 }
}

fn check(random: &mut Random, dtype: DType, shape: &[usize], threads: usize) {
    let what = format!("{dtype} {shape:?}");
    let mut tensor = |dtype, shape: &[usize]| {
        let meta = random.layout(dtype, shape);
        random.tensor(meta)
    };
    let (x, dy) = (tensor(dtype, shape), tensor(dtype, shape));
    let [scale, bias, mean, mut var] = [(); 4].map(|()| tensor(wide(dtype), &shape[1..2]));
    var = Tensor::new(var.meta.clone(), &var.values().iter().map(|v| v.abs()).collect::<Vec<_>>());
    let near = |got: &Tensor, want: &[f64], name: &str| {
        let tolerance = 8.0 * tolerance(got.meta.dtype);
        assert_near(&got.values(), want, tolerance, &format!("{name} {what}"));
    };
    let all_near = |got: &[Tensor], want: &[Vec<f64>], name: &str| {
        got.iter().zip(want).for_each(|(got, want)| near(got, want, name));
    };
    let (xs, ds) = (x.values(), dy.values());
    let [scales, biases, means, vars] = [&scale, &bias, &mean, &var].map(Tensor::values);

    let y = apply(&BatchNormInference { eps: EPS }, &[&x, &scale, &bias, &mean, &var], threads);
    let mut want = xs.clone();
    for (c, places) in channels(shape).into_iter().enumerate() {
        let inverse = 1.0 / (vars[c] + EPS.0).sqrt();
        places.iter().for_each(|&i| want[i] = (xs[i] - means[c]) * inverse * scales[c] + biases[c]);
    }
    all_near(&y.unwrap(), &[want], "inference");
    let given = [&dy, &x, &scale, &mean, &var];
    let got = apply(&BatchNormInferenceGrad { eps: EPS }, &given, threads).unwrap();
    let want = gradients([&ds, &xs], shape, [&scales, &means, &vars], true);
    all_near(&got, &want, "inference gradient");

    if xs.is_empty() {
        return;
    }
    let got = apply(&BatchNorm { eps: EPS }, &[&x, &scale, &bias], threads).unwrap();
    assert_eq!(got[0].meta.strides, x.meta.like(dtype).strides);
    all_near(&got, &normalized(&xs, shape, &scales, &biases), "training");
    let (means, vars) = (got[1].values(), got[2].values());
    let given = [&dy, &x, &scale, &got[1], &got[2]];
    let got = apply(&BatchNormGrad { eps: EPS }, &given, threads).unwrap();
    let want = gradients([&ds, &xs], shape, [&scales, &means, &vars], false);
    all_near(&got, &want, "gradient");
}

#[test]
fn any_shape_and_layout_as_plain_loops() {
    let mut random = Random::new(31);
    for round in 0..120 {
        let mut shape: Vec<usize> = (0..2 + round % 4).map(|_| 1 + random.below(5)).collect();
        shape[0] = random.below(5);
        check(&mut random, FLOATS[round % 4], &shape, 1 + round % 3);
    }
    for dtype in FLOATS {
        check(&mut random, dtype, &[3, 300, 4, 5], 2);
        check(&mut random, dtype, &[40, 17, 21, 23], 2);
        check(&mut random, dtype, &[500, 2], 2);
    }
}

/// NCHW and channels-last.
fn layouts(dtype: DType, [n, c, h, w]: [usize; 4]) -> [Meta; 2] {
    let plain = Meta::new(dtype, [n, c, h, w]);
    let strides = [h * w * c, 1, w * c, c].map(|s| s as isize);
    [plain.clone(), Meta { strides: strides[..].into(), ..plain }]
}

#[test]
fn a_mean_far_from_zero_costs_no_accuracy() {
    let shape = [25, 2, 200, 200];
    let n = shape.iter().product::<usize>();
    let mut random = Random::new(32);
    let value = |i: usize| 5000.0 + (i % 257) as f64 / 64.0 + random.below(2) as f64 / 128.0;
    let values: Vec<f64> = (0..n).map(value).collect();
    let parameter = |v: f64| Tensor::new(Meta::new(DType::Float32, [2]), &[v, v]);
    for meta in layouts(DType::Float32, shape) {
        let x = Tensor::new(meta, &values);
        let given = [&x, &parameter(1.0), &parameter(0.0)];
        let got = apply(&BatchNorm { eps: EPS }, &given, 2).unwrap();
        let [y, mean, var] = normalized(&x.values(), &shape, &[1.0; 2], &[0.0; 2]);
        assert_near(&got[1].values(), &mean, 1e-7, "mean");
        assert_near(&got[2].values(), &var, 1e-7, "variance");
        assert_near(&got[0].values(), &y, 1e-6, "y");
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let shape = [9, 300, 21, 23];
    let mut random = Random::new(33);
    for meta in layouts(DType::Float32, shape) {
        let (x, dy) = (random.tensor(meta.clone()), random.tensor(meta));
        let scale = random.tensor(Meta::new(DType::Float32, [300]));
        let results = |threads: usize| {
            let out = apply(&BatchNorm { eps: EPS }, &[&x, &scale, &scale], threads).unwrap();
            let given = [&dy, &x, &scale, &out[1], &out[2]];
            let gradient = apply(&BatchNormGrad { eps: EPS }, &given, threads).unwrap();
            out.iter().chain(&gradient).map(Tensor::values).collect::<Vec<_>>()
        };
        assert!(results(1) == results(2));
        assert!(results(1) == results(5));
    }
}

fn bits(tensors: &[Tensor]) -> Vec<u64> {
    let bits = |x: f64| if x.is_nan() { f64::NAN.to_bits() } else { x.to_bits() };
    tensors.iter().flat_map(Tensor::values).map(bits).collect()
}

/// The only output of an operation.
fn one(op: impl Into<Kind>, inputs: &[&Tensor]) -> Tensor {
    apply(&op.into(), inputs, 2).unwrap().remove(0)
}

#[test]
fn in_two_steps_and_with_what_comes_behind_to_the_bit() {
    let (mut random, norm, grad) =
        (Random::new(35), BatchNorm { eps: EPS }, BatchNormGrad { eps: EPS });
    for (round, shape) in [[5, 3, 4, 5], [9, 300, 21, 23], [2, 17, 1, 7]].into_iter().enumerate() {
        for (meta, dtype) in FLOATS[..2].iter().flat_map(|&t| layouts(t, shape).map(|m| (m, t))) {
            let [mut x, dy, other] = [(); 3].map(|()| random.tensor(meta.clone()));
            if round == 0 {
                x = Tensor::new(x.meta.clone(), &[&[f64::NAN], &x.values()[1..]].concat());
            }
            let [scale, bias] = [(); 2].map(|()| random.tensor(Meta::new(dtype, [shape[1]])));
            let given = [&x, &scale, &bias];
            let whole = apply(&norm, &given, 2).unwrap();
            let stats = apply(&BatchNormStatistics { norm: norm.clone() }, &given, 2).unwrap();
            assert_eq!(bits(&stats[..2]), bits(&whole[1..]));
            let [mean, var, factor, term] = [&stats[0], &stats[1], &stats[2], &stats[3]];
            let pass = |adds, relu| {
                let given = [&x, mean, factor, term, &other];
                one(Normalize { adds, relu }, &given[..4 + usize::from(adds)])
            };
            let relu = |z: &Tensor| one(Unary { f: UnaryFn::Relu }, &[z]);
            let (y, sum) =
                (relu(&whole[0]), one(Binary { f: BinaryFn::Add }, &[&whole[0], &other]));
            let got = [pass(false, false), pass(false, true), pass(true, false), pass(true, true)];
            assert_eq!(bits(&got), bits(&[whole[0].clone(), y.clone(), sum.clone(), relu(&sum)]));
            let given = [&dy, &x, &scale, mean, var, factor, term];
            let got = apply(&BatchNormReluGrad { norm: grad.clone() }, &given, 2).unwrap();
            let dz = one(UnaryGrad { f: UnaryFn::Relu }, &[&dy, &y]);
            let given = [&dz, &x, &scale, mean, var];
            assert_eq!(bits(&got), bits(&apply(&grad, &given, 2).unwrap()));
        }
    }
}

#[test]
fn nan_and_infinity_stay_in_their_channel() {
    let mut values = vec![0.5; 12];
    (values[0], values[2], values[7]) = (f64::NAN, 1.0, f64::INFINITY);
    for meta in layouts(DType::Float32, [2, 3, 1, 2]) {
        let x = Tensor::new(meta, &values);
        let one = Tensor::new(Meta::new(DType::Float32, [3]), &[1.0; 3]);
        let out = apply(&BatchNorm { eps: EPS }, &[&x, &one, &one], 1).unwrap();
        let mean = out[1].values();
        assert!(mean[0].is_nan() && mean[1].is_finite() && mean[2].is_finite(), "{mean:?}");
        let infinite = Tensor::new(x.meta.clone(), &[&[f64::INFINITY], &[0.0; 11][..]].concat());
        let out = apply(&BatchNorm { eps: EPS }, &[&infinite, &one, &one], 1).unwrap();
        assert_eq!(out[1].values(), [f64::INFINITY, 0.0, 0.0]);
        assert!(out[2].values()[0].is_nan());
    }
}

#[test]
fn bad_inputs_are_refused() {
    let float = |shape: &[usize]| Meta::new(DType::Float32, shape);
    let (c, norm) = (float(&[3]), BatchNorm { eps: EPS });
    let infer = |x: &Meta, scale: &Meta| norm.infer(&[x, scale, &c]).map(|_| ());
    assert!(infer(&float(&[2, 3, 4]), &c).is_ok());
    assert!(matches!(infer(&float(&[0, 3, 4]), &c), Err(Error::Value { .. })));
    assert!(matches!(infer(&float(&[3]), &c), Err(Error::Shape { .. })));
    assert!(matches!(infer(&float(&[2, 3]), &float(&[2])), Err(Error::Shape { .. })));
    let half = Meta::new(DType::Float16, [3]);
    assert!(matches!(infer(&float(&[2, 3]), &half), Err(Error::DType { .. })));
    let negative = BatchNorm { eps: Real(-1.0) };
    assert!(negative.infer(&[&float(&[2, 3]), &c, &c]).is_err());
}

#[test]
fn running_averages() {
    let mut random = Random::new(34);
    let rule = RunningAverage { momentum: Real(0.9), factor: Real(1.5) };
    for dtype in FLOATS {
        let [old, new] = [(); 2].map(|()| {
            let meta = random.layout(dtype, &[3, 5]);
            random.tensor(meta)
        });
        let want: Vec<f64> =
            old.values().iter().zip(new.values()).map(|(o, n)| 0.1 * o + 0.9 * 1.5 * n).collect();
        let got = apply(&rule, &[&old, &new], 2).unwrap();
        assert_near(&got[0].values(), &want, tolerance(dtype), "running average");
    }
}
