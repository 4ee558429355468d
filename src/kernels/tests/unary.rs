//! Functions and gradients of every dtype, compared with float64.

use super::*;
use crate::ops::unary::*;

const FLOATS: [DType; 4] = [DType::Float64, DType::Float32, DType::Float16, DType::BFloat16];

/// A function, its reference, and the points at which its gradient is tested.
type Row = (UnaryFn, fn(f64) -> f64, &'static [f64]);

/// The point at which an increasing function has this value, by bisection.
fn inverse(f: fn(f64) -> f64, value: f64) -> f64 {
    let (mut low, mut high) = (-8.0, 8.0);
    for _ in 0..80 {
        let middle = 0.5 * (low + high);
        if f(middle) < value { low = middle } else { high = middle }
    }
    low
}

fn normal_cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x / 2f64.sqrt())
}

/// The derivative of log Gamma by its recurrence, and its series from 60 on.
fn digamma(x: f64) -> f64 {
    let z = x + 60.0;
    let climb: f64 = (0..60).rev().map(|k| 1.0 / (x + f64::from(k))).sum();
    z.ln() - 0.5 / z - 1.0 / (12.0 * z * z) + 1.0 / (120.0 * z.powi(4)) - climb
}

/// The derivative of [`digamma`], likewise.
fn trigamma(x: f64) -> f64 {
    let z = x + 60.0;
    let climb: f64 = (0..60).rev().map(|k| (x + f64::from(k)).powi(-2)).sum();
    climb + 1.0 / z + 0.5 / (z * z) + 1.0 / (6.0 * z.powi(3)) - 1.0 / (30.0 * z.powi(5))
}

fn table() -> Vec<Row> {
    use UnaryFn::*;
    const ALL: &[f64] = &[-3.0, -1.25, -0.5, -0.125, 0.25, 0.75, 1.5, 4.0];
    const NO_POLES: &[f64] = &[-2.75, -1.25, -0.5, -0.125, 0.25, 0.75, 1.5, 4.0];
    const SMALL: &[f64] = &[-0.875, -0.5, -0.125, 0.25, 0.75];
    const POSITIVE: &[f64] = &[0.125, 0.5, 1.0, 2.5, 6.0];
    const PROBABILITIES: &[f64] = &[0.0625, 0.25, 0.5, 0.875];
    const ABOVE: &[f64] = &[1.125, 1.5, 3.0, 20.0];
    let clip = Clip { min: Some(Real(-1.0)), max: Some(Real(2.0)) };
    let selu = Selu { alpha: Real(1.5), gamma: Real(1.25) };
    vec![
        (Neg, |x| -x, ALL),
        (Abs, f64::abs, ALL),
        (Sign, |x| x.signum(), ALL),
        (Exp, f64::exp, ALL),
        (Expm1, f64::exp_m1, ALL),
        (Log, f64::ln, POSITIVE),
        (Log1p, f64::ln_1p, SMALL),
        (Log2, f64::log2, POSITIVE),
        (Log10, f64::log10, POSITIVE),
        (Exp2, f64::exp2, ALL),
        (Sqrt, f64::sqrt, POSITIVE),
        (Square, |x| x * x, ALL),
        (Reciprocal, |x| 1.0 / x, ALL),
        (Ceil, f64::ceil, &[-1.25, 0.75, 2.5]),
        (Floor, f64::floor, &[-1.25, 0.75, 2.5]),
        (Round, f64::round, &[-1.25, 0.75, 2.25]),
        (RoundE, f64::round_ties_even, &[-1.25, 0.75, 2.25]),
        (Sin, f64::sin, ALL),
        (Cos, f64::cos, ALL),
        (Tan, f64::tan, SMALL),
        (Asin, f64::asin, SMALL),
        (Acos, f64::acos, SMALL),
        (Atan, f64::atan, ALL),
        (Sinh, f64::sinh, ALL),
        (Cosh, f64::cosh, ALL),
        (Tanh, f64::tanh, ALL),
        (Asinh, f64::asinh, ALL),
        (Acosh, f64::acosh, ABOVE),
        (Atanh, f64::atanh, SMALL),
        (Sigmoid, |x| 1.0 / (1.0 + (-x).exp()), ALL),
        (Relu, |x| x.max(0.0), ALL),
        (Softplus, |x| x.exp().ln_1p(), ALL),
        (Softsign, |x| x / (1.0 + x.abs()), ALL),
        (Erf, libm::erf, ALL),
        (Erfc, libm::erfc, ALL),
        (Erfinv, |x| inverse(libm::erf, x), SMALL),
        (Ndtr, normal_cdf, ALL),
        (LogNdtr, |x| normal_cdf(x).ln(), ALL),
        (Ndtri, |p| inverse(normal_cdf, p), PROBABILITIES),
        (Lgamma, libm::lgamma, NO_POLES),
        (Digamma, digamma, NO_POLES),
        (Polygamma { n: Real(1.0) }, trigamma, NO_POLES),
        (Gelu, |x| 0.5 * x * (1.0 + libm::erf(x / 2f64.sqrt())), ALL),
        (Silu, |x| x / (1.0 + (-x).exp()), ALL),
        (LeakyRelu { a: Real(0.25) }, |x| if x < 0.0 { 0.25 * x } else { x }, ALL),
        (LeakyRelu { a: Real(-0.5) }, |x| if x < 0.0 { -0.5 * x } else { x }, ALL),
        (Elu { alpha: Real(0.5) }, |x| if x < 0.0 { 0.5 * x.exp_m1() } else { x }, ALL),
        (Elu { alpha: Real(-0.5) }, |x| if x < 0.0 { -0.5 * x.exp_m1() } else { x }, ALL),
        (selu, |x| 1.25 * if x < 0.0 { 1.5 * x.exp_m1() } else { x }, ALL),
        (
            HardSigmoid { alpha: Real(0.25), gamma: Real(0.5) },
            |x| (0.25 * x + 0.5).clamp(0.0, 1.0),
            ALL,
        ),
        (clip, |x| x.clamp(-1.0, 2.0), ALL),
        (Clip { min: None, max: Some(Real(0.5)) }, |x| x.min(0.5), ALL),
    ]
}

fn tensor(dtype: DType, values: &[f64]) -> Tensor {
    Tensor::new(Meta::new(dtype, [values.len()]), values)
}

fn forward(f: &UnaryFn, x: &Tensor) -> Vec<f64> {
    apply(&Unary { f: f.clone() }, &[x], 1).unwrap()[0].values()
}

fn gradient(f: &UnaryFn, dy: &Tensor, x: &Tensor) -> Vec<f64> {
    let y = apply(&Unary { f: f.clone() }, &[x], 1).unwrap().remove(0);
    let inputs = match f.saves() {
        Saves::Input => vec![dy, x],
        Saves::Output => vec![dy, &y],
        Saves::Nothing => vec![dy],
    };
    apply(&UnaryGrad { f: f.clone() }, &inputs, 1).unwrap()[0].values()
}

#[test]
fn every_function_is_in_the_table() {
    let known: Vec<_> = table().iter().map(|row| row.0.name()).collect();
    let missing = UnaryFn::NAMES.iter().find(|n| **n != "not" && !known.contains(n));
    assert_eq!(missing, None);
}

#[test]
fn values_are_those_of_float64() {
    for (f, reference, points) in table() {
        for dtype in FLOATS {
            let want: Vec<f64> = points.iter().map(|&x| reference(x)).collect();
            let got = forward(&f, &tensor(dtype, points));
            assert_near(&got, &want, tolerance(dtype), &format!("{f:?} of {dtype}"));
        }
    }
}

#[test]
fn gradients_are_slopes() {
    for (f, reference, points) in table() {
        for dtype in FLOATS {
            let slope = |x: f64| (reference(x + 1e-6) - reference(x - 1e-6)) / 2e-6;
            let dy: Vec<f64> = (0..points.len()).map(|i| i as f64 - 2.5).collect();
            let want: Vec<f64> = points.iter().zip(&dy).map(|(&x, dy)| dy * slope(x)).collect();
            let got = gradient(&f, &tensor(dtype, &dy), &tensor(dtype, points));
            let tolerance = (4.0 * tolerance(dtype)).max(1e-7);
            assert_near(&got, &want, tolerance, &format!("gradient of {f:?} in {dtype}"));
        }
    }
}

/// An element gives the same bits whatever its position and the layout.
#[test]
fn tails_and_strides_give_the_bits_of_the_body() {
    let mut random = Random::new(5);
    for dtype in [DType::Float32, DType::Float16] {
        let many = random.tensor(Meta::new(dtype, [4, 533]));
        let values = many.values();
        let turned = Meta { strides: smallvec::smallvec![1, -5], ..Meta::new(dtype, [4, 533]) };
        let turned = Tensor::new(turned, &values);
        for (f, ..) in table() {
            let body = forward(&f, &many);
            assert_same(&body, &forward(&f, &turned), &f);
            let alone = |i: usize| forward(&f, &tensor(dtype, &values[i..=i]))[0];
            let tail: Vec<f64> = (0..200).map(alone).collect();
            assert_same(&body[..200], &tail, &f);
            let back = gradient(&f, &many, &turned);
            assert_same(&back, &gradient(&f, &turned, &many), &f);
        }
    }
}

fn assert_same(a: &[f64], b: &[f64], f: &UnaryFn) {
    let bits = |v: &[f64]| v.iter().map(|x| x.to_bits() << 1 >> 1).collect::<Vec<_>>();
    assert_eq!(bits(a), bits(b), "{f:?}");
}

#[test]
fn integers_have_integer_values() {
    let of = |f: &UnaryFn, dtype, values: &[f64]| forward(f, &tensor(dtype, values));
    assert_eq!(of(&UnaryFn::Neg, DType::UInt8, &[1.0, 0.0]), [255.0, 0.0]);
    assert_eq!(of(&UnaryFn::Abs, DType::Int8, &[-128.0, -3.0, 4.0]), [-128.0, 3.0, 4.0]);
    assert_eq!(of(&UnaryFn::Sign, DType::Int64, &[-9.0, 0.0, 4.0]), [-1.0, 0.0, 1.0]);
    assert_eq!(of(&UnaryFn::Square, DType::Int8, &[12.0]), [-112.0]);
    assert_eq!(of(&UnaryFn::Relu, DType::Int32, &[-1.0, 3.0]), [0.0, 3.0]);
    let clip = UnaryFn::Clip { min: Some(Real(-1e9)), max: Some(Real(3.0)) };
    assert_eq!(of(&clip, DType::Int8, &[-100.0, 100.0]), [-100.0, 3.0]);
    assert_eq!(of(&UnaryFn::Round, DType::Int32, &[7.0]), [7.0]);
    for dtype in DType::COMPUTED {
        let zeros = of(&UnaryFn::Not, dtype, &[0.0, 1.0]);
        assert_eq!(zeros, [1.0, 0.0], "{dtype}");
    }
}

#[test]
fn what_has_no_value_is_refused() {
    let infer = |f: UnaryFn, dtype| Unary { f }.infer(&[&Meta::new(dtype, [2])]);
    assert!(matches!(infer(UnaryFn::Exp, DType::Int32), Err(Error::DType { .. })));
    assert!(matches!(infer(UnaryFn::Neg, DType::Bool), Err(Error::DType { .. })));
    let clip = UnaryFn::Clip { min: Some(Real(0.5)), max: None };
    assert!(matches!(infer(clip.clone(), DType::Int32), Err(Error::DType { .. })));
    assert!(infer(clip, DType::BFloat16).is_ok());
    let nan = UnaryFn::Clip { min: None, max: Some(Real(f64::NAN)) };
    assert!(matches!(infer(nan, DType::Float32), Err(Error::Value { .. })));
    let (x, z) = (Meta::new(DType::Float32, [2]), Meta::new(DType::Float32, [1]));
    let grad = |f: UnaryFn, inputs: &[&Meta]| UnaryGrad { f }.infer(inputs);
    assert!(matches!(grad(UnaryFn::Exp, &[&x]), Err(Error::Arity { .. })));
    assert!(matches!(grad(UnaryFn::Neg, &[&x, &x]), Err(Error::Arity { .. })));
    assert!(matches!(grad(UnaryFn::Exp, &[&x, &z]), Err(Error::Shape { .. })));
    assert!(grad(UnaryFn::Not, &[&x]).is_err());
}

const NAN: f64 = f64::NAN;
const INF: f64 = f64::INFINITY;

#[test]
fn infinities_and_nan_follow_their_limits() {
    use UnaryFn::*;
    let cases: Vec<(UnaryFn, f64, f64)> = vec![
        (Relu, NAN, NAN),
        (Sign, NAN, NAN),
        (Sign, -INF, -1.0),
        (Softplus, 100.0, 100.0),
        (Softplus, -INF, 0.0),
        (Softsign, -INF, -1.0),
        (Softsign, NAN, NAN),
        (Gelu, -INF, 0.0),
        (Gelu, INF, INF),
        (Gelu, NAN, NAN),
        (Silu, -INF, 0.0),
        (Silu, NAN, NAN),
        (Round, 2.5, 3.0),
        (Round, -0.5, -1.0),
        (Round, INF, INF),
        (RoundE, 2.5, 2.0),
        (LeakyRelu { a: Real(0.0) }, -INF, 0.0),
        (LeakyRelu { a: Real(0.0) }, NAN, NAN),
        (Elu { alpha: Real(0.0) }, INF, INF),
        (Elu { alpha: Real(1.0) }, -INF, -1.0),
        (Clip { min: Some(Real(0.0)), max: Some(Real(1.0)) }, NAN, NAN),
        (Clip { min: Some(Real(3.0)), max: Some(Real(1.0)) }, 2.0, 1.0),
        (HardSigmoid { alpha: Real(0.2), gamma: Real(0.5) }, NAN, NAN),
        (HardSigmoid { alpha: Real(0.2), gamma: Real(0.5) }, -INF, 0.0),
    ];
    for (f, x, want) in cases {
        for dtype in FLOATS {
            assert_near(&forward(&f, &tensor(dtype, &[x])), &[want], 0.0, &format!("{f:?} of {x}"));
        }
    }
}

#[test]
fn gradients_at_the_ends() {
    use UnaryFn::*;
    let hard = HardSigmoid { alpha: Real(0.5), gamma: Real(0.5) };
    let clip = Clip { min: Some(Real(-1.0)), max: Some(Real(1.0)) };
    let cases: Vec<(UnaryFn, f64, f64)> = vec![
        (Relu, 0.0, 0.0),
        (Relu, NAN, 2.0),
        (Abs, 0.0, 0.0),
        (Abs, NAN, NAN),
        (hard.clone(), 1.0, 0.0),
        (hard.clone(), -1.0, 0.0),
        (hard, 0.0, 1.0),
        (clip.clone(), 1.0, 2.0),
        (clip.clone(), -1.0, 2.0),
        (clip, 1.5, 0.0),
        (Gelu, INF, 2.0),
        (Gelu, -INF, 0.0),
        (Silu, INF, 2.0),
        (Silu, -INF, 0.0),
        (Elu { alpha: Real(1.0) }, -INF, 0.0),
        (Softplus, -INF, 0.0),
        (Softplus, INF, 2.0),
        (Sqrt, 0.0, INF),
        (Asinh, 1e30, 2e-30),
    ];
    for (f, x, want) in cases {
        for dtype in [DType::Float64, DType::Float32] {
            let got = gradient(&f, &tensor(dtype, &[2.0]), &tensor(dtype, &[x]));
            assert_near(&got, &[want], 1e-6, &format!("gradient of {f:?} at {x}"));
        }
    }
}

#[test]
fn names_in_text() {
    let kind = |text: &str| serde_json::from_str::<crate::ops::Kind>(text).unwrap();
    let elu = kind(r#"{"op":"unary","f":{"elu":{"alpha":0.5}}}"#);
    assert_eq!(elu, Unary { f: UnaryFn::Elu { alpha: Real(0.5) } }.into());
    let clip = kind(r#"{"op":"unary_grad","f":{"clip":{"min":null,"max":1}}}"#);
    assert_eq!(clip.family().name(), "clip_grad");
    assert_eq!(kind(r#"{"op":"unary","f":"rounde"}"#).family().name(), "rounde");
    let text = serde_json::to_string(&elu).unwrap();
    assert_eq!(kind(&text), elu);
}
