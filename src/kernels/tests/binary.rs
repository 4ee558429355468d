//! Functions of two tensors of every dtype, compared with float64 and int64.

use super::*;
use crate::ops::binary::*;

fn tensor(dtype: DType, values: &[f64]) -> Tensor {
    Tensor::new(Meta::new(dtype, [values.len()]), values)
}

fn of(f: BinaryFn, dtype: DType, a: &[f64], b: &[f64]) -> Vec<f64> {
    apply(&Binary { f }, &[&tensor(dtype, a), &tensor(dtype, b)], 1).unwrap()[0].values()
}

fn with_scalar(f: BinaryFn, dtype: DType, a: &[f64], b: Scalar, reverse: bool) -> Vec<f64> {
    let family = BinaryScalar { f, scalar: b, reverse };
    apply(&family, &[&tensor(dtype, a)], 1).unwrap()[0].values()
}

/// Each function in float64, as NumPy defines it.
fn reference(f: BinaryFn, a: f64, b: f64) -> f64 {
    use BinaryFn::*;
    let truth = |t: bool| t as u8 as f64;
    match f {
        Add => a + b,
        Sub => a - b,
        Mul => a * b,
        Div => a / b,
        Pow => a.powf(b),
        Maximum => a.max(b),
        Minimum => a.min(b),
        FloorDivide => (a / b).floor(),
        Remainder => a - (a / b).floor() * b,
        Lt => truth(a < b),
        Le => truth(a <= b),
        Gt => truth(a > b),
        Ge => truth(a >= b),
        Eq => truth(a == b),
        Ne => truth(a != b),
        And => truth(a != 0.0 && b != 0.0),
        Or => truth(a != 0.0 || b != 0.0),
        Xor => truth((a != 0.0) != (b != 0.0)),
        BitwiseAnd => (a as i64 & b as i64) as f64,
        BitwiseOr => (a as i64 | b as i64) as f64,
        BitwiseXor => (a as i64 ^ b as i64) as f64,
        LeftShift => ((a as i64) << b as i64) as f64,
        RightShift => (a as i64 >> b as i64) as f64,
    }
}

fn all() -> Vec<BinaryFn> {
    let read = |name: &&str| serde_json::from_str(&format!("\"{name}\"")).unwrap();
    BinaryFn::NAMES.iter().map(read).collect()
}

/// Numbers that every dtype represents, and whose results it represents, too.
fn numbers(dtype: DType) -> (Vec<f64>, Vec<f64>) {
    let signs = if dtype == DType::UInt8 { [1.0, 1.0] } else { [-1.0, 1.0] };
    let mut pairs = (vec![], vec![]);
    for a in 0..7 {
        for b in 1..4 {
            for s in signs {
                pairs.0.push(s * a as f64);
                pairs.1.push(b as f64);
                pairs.0.push((a + 6) as f64);
                pairs.1.push(s * b as f64);
            }
        }
    }
    pairs
}

#[test]
fn numbers_of_every_type() {
    for dtype in DType::COMPUTED.into_iter().filter(|d| *d != DType::Bool) {
        let (a, mut b) = numbers(dtype);
        for f in all() {
            if f == BinaryFn::Div && !dtype.is_float()
                || f.class() == Class::Whole && dtype.is_float()
                || f == BinaryFn::Sub && dtype == DType::UInt8
            {
                continue;
            }
            let counts = matches!(f, BinaryFn::Pow | BinaryFn::LeftShift | BinaryFn::RightShift);
            if counts && dtype.is_int() {
                b = b.iter().map(|b| b.abs()).collect();
            }
            let want: Vec<f64> = a.iter().zip(&b).map(|(&a, &b)| reference(f, a, b)).collect();
            // Powers wrap.
            let fold = |v: f64| match dtype {
                DType::Int8 => v as i64 as i8 as f64,
                DType::UInt8 => v as i64 as u8 as f64,
                _ => v,
            };
            let want: Vec<f64> = want.into_iter().map(fold).collect();
            let what = format!("{f:?} of {dtype}");
            assert_near(&of(f, dtype, &a, &b), &want, tolerance(dtype), &what);
            let scalar = Scalar::Int(2);
            let by_two: Vec<f64> = a.iter().map(|&a| fold(reference(f, a, 2.0))).collect();
            let got = with_scalar(f, dtype, &a, scalar, false);
            assert_near(&got, &by_two, tolerance(dtype), &what);
            if f != BinaryFn::Sub {
                let from_two: Vec<f64> = b.iter().map(|&b| fold(reference(f, 2.0, b))).collect();
                let got = with_scalar(f, dtype, &b, scalar, true);
                assert_near(&got, &from_two, tolerance(dtype), &what);
            }
        }
    }
}

#[test]
fn booleans() {
    let (a, b) = ([0.0, 0.0, 1.0, 1.0], [0.0, 1.0, 0.0, 1.0]);
    for f in all() {
        let refused = Binary { f }.infer(&[&Meta::new(DType::Bool, [4]); 2]);
        use BinaryFn::*;
        if matches!(f, Sub | Div | Pow | FloorDivide | Remainder | LeftShift | RightShift) {
            assert!(matches!(refused, Err(Error::DType { .. })), "{f:?}");
            continue;
        }
        let want: Vec<f64> = a.iter().zip(&b).map(|(&a, &b)| reference(f, a, b).min(1.0)).collect();
        assert_eq!(of(f, DType::Bool, &a, &b), want, "{f:?}");
    }
}

#[test]
fn shifts_beyond_the_bits_leave_none() {
    use BinaryFn::*;
    for dtype in [DType::Int8, DType::Int32, DType::Int64] {
        let bits = 8.0 * dtype.size() as f64;
        let (a, b) = ([-5.0, 5.0, -5.0, 5.0, 1.0], [bits, bits, -1.0, -1.0, bits - 1.0]);
        let least = -f64::powi(2.0, bits as i32 - 1);
        assert_eq!(of(LeftShift, dtype, &a, &b), [0.0, 0.0, 0.0, 0.0, least]);
        assert_eq!(of(RightShift, dtype, &a, &b), [-1.0, 0.0, -1.0, 0.0, 0.0]);
    }
    assert_eq!(of(LeftShift, DType::UInt8, &[255.0, 1.0], &[4.0, 200.0]), [240.0, 0.0]);
    assert_eq!(of(RightShift, DType::UInt8, &[255.0, 255.0], &[4.0, 8.0]), [15.0, 0.0]);
}

const NAN: f64 = f64::NAN;
const INF: f64 = f64::INFINITY;

#[test]
fn special_values_follow_numpy() {
    use BinaryFn::*;
    let cases = [
        (Maximum, NAN, 1.0, NAN),
        (Maximum, 1.0, NAN, NAN),
        (Minimum, NAN, 1.0, NAN),
        (Minimum, 1.0, NAN, NAN),
        (Lt, NAN, 1.0, 0.0),
        (Ge, NAN, 1.0, 0.0),
        (Ne, NAN, NAN, 1.0),
        (Eq, NAN, NAN, 0.0),
        (And, NAN, 1e-30, 1.0),
        (Xor, 1e-30, 0.0, 1.0),
        (Div, 1.0, 0.0, INF),
        (Div, 0.0, 0.0, NAN),
        (Pow, NAN, 0.0, 1.0),
        (Pow, -2.0, 3.0, -8.0),
        (Pow, -2.0, 0.5, NAN),
        (FloorDivide, 1.0, 0.0, INF),
        (FloorDivide, -7.0, 2.0, -4.0),
        (FloorDivide, 7.0, -2.0, -4.0),
        (FloorDivide, -1.0, INF, -1.0),
        (FloorDivide, INF, 1.0, NAN),
        (FloorDivide, 1.0, 0.1, 9.0),
        (Remainder, -7.0, 2.0, 1.0),
        (Remainder, 7.0, -2.0, -1.0),
        (Remainder, 1.0, 0.0, NAN),
        (Remainder, -1.0, INF, INF),
        (Remainder, 5.0, INF, 5.0),
    ];
    for (f, a, b, want) in cases {
        for dtype in [DType::Float64, DType::Float32] {
            if (b, dtype) == (0.1, DType::Float32) {
                continue;
            }
            assert_near(&of(f, dtype, &[a], &[b]), &[want], 0.0, &format!("{f:?} of {a}, {b}"));
        }
    }
}

#[test]
fn powers_that_are_roots_and_quotients() {
    let x = [-INF, -4.0, -0.0, 0.0, 4.0, INF];
    for (exponent, want) in [
        (0.5, [NAN, NAN, -0.0, 0.0, 2.0, INF]),
        (-0.5, [NAN, NAN, -INF, INF, 0.5, 0.0]),
        (-1.0, [-0.0, -0.25, -INF, INF, 0.25, 0.0]),
        (3.0, [-INF, -64.0, -0.0, 0.0, 64.0, INF]),
    ] {
        for dtype in [DType::Float64, DType::Float32, DType::Float16, DType::BFloat16] {
            let exponent = Scalar::Real(Real(exponent));
            let got = with_scalar(BinaryFn::Pow, dtype, &x, exponent, false);
            // As text, in which zeros have signs.
            assert_eq!(format!("{got:?}"), format!("{want:?}"), "{exponent:?} {dtype}");
        }
    }
}

#[test]
fn integers_wrap_and_never_divide_by_zero() {
    use BinaryFn::*;
    assert_eq!(of(Add, DType::UInt8, &[250.0], &[10.0]), [4.0]);
    assert_eq!(of(Sub, DType::UInt8, &[1.0], &[2.0]), [255.0]);
    assert_eq!(of(Mul, DType::Int32, &[65536.0], &[65536.0]), [0.0]);
    assert_eq!(of(FloorDivide, DType::Int8, &[-128.0], &[-1.0]), [-128.0]);
    assert_eq!(of(Remainder, DType::Int8, &[-128.0], &[-1.0]), [0.0]);
    assert_eq!(of(Pow, DType::Int64, &[3.0], &[39.0]), [3i64.pow(39) as f64]);
    for dtype in [DType::Int8, DType::UInt8, DType::Int32, DType::Int64] {
        let (ones, zero) = (tensor(dtype, &[1.0; 2000]), tensor(dtype, &[0.0]));
        for f in [FloorDivide, Remainder] {
            for threads in [1, 2] {
                let failed = apply(&Binary { f }, &[&ones, &zero], threads);
                assert!(matches!(failed, Err(Error::Value { .. })), "{f:?} {dtype}");
            }
            let family = BinaryScalar { f, scalar: Scalar::Int(0), reverse: false };
            assert!(matches!(apply(&family, &[&ones], 1), Err(Error::Value { .. })));
        }
    }
    let (a, b) = (tensor(DType::Int32, &[1.0, 2.0]), tensor(DType::Int32, &[3.0, -1.0]));
    assert!(matches!(apply(&Binary { f: Pow }, &[&a, &b], 1), Err(Error::Value { .. })));
}

#[test]
fn every_integer_without_a_result_is_found_before_the_run() {
    use BinaryFn::*;
    let mut random = Random::new(5);
    for dtype in [DType::Int8, DType::Int32, DType::Int64, DType::UInt8] {
        for (f, bad) in [(FloorDivide, 0.0), (Remainder, 0.0), (Pow, -1.0)] {
            let meta = random.layout(dtype, &[3, 5, 700]);
            let mut values = vec![1.0; 10_500];
            let run = |b: &[f64], threads| {
                let b = Tensor::new(meta.clone(), b);
                let whole = apply(&Binary { f }, &[&tensor(dtype, &[4.0]), &b], threads);
                let scalar = BinaryScalar { f, scalar: Scalar::Int(4), reverse: true };
                let reversed = apply(&scalar, &[&b], threads);
                assert_eq!(whole.is_err(), reversed.is_err());
                whole.is_err()
            };
            assert!(!run(&values, 2));
            values[random.below(10_500)] = bad;
            // No unsigned exponent is negative.
            let fails = !(f == Pow && dtype == DType::UInt8);
            assert_eq!([run(&values, 1), run(&values, 3)], [fails; 2], "{f:?} {dtype}");
        }
    }
    let (none, zero) = (tensor(DType::Int32, &[]), tensor(DType::Int32, &[0.0]));
    assert!(apply(&Binary { f: FloorDivide }, &[&none, &zero], 1).is_ok());
    let half = tensor(DType::Float16, &[0.0, -1.0]);
    assert!(apply(&Binary { f: Remainder }, &[&half, &half], 1).is_ok());
}

#[test]
fn scalars_take_the_dtype_of_the_tensor() {
    let half = Scalar::Real(Real(0.5));
    let infer = |f, scalar, dtype| {
        BinaryScalar { f, scalar, reverse: false }.infer(&[&Meta::new(dtype, [2])])
    };
    use BinaryFn::*;
    assert!(matches!(infer(Add, half, DType::Int32), Err(Error::DType { .. })));
    assert!(matches!(infer(Add, Scalar::Int(300), DType::UInt8), Err(Error::Value { .. })));
    assert!(matches!(infer(Div, Scalar::Int(2), DType::Int32), Err(Error::DType { .. })));
    assert_eq!(infer(And, half, DType::Int32).unwrap()[0].dtype, DType::Bool);
    assert_eq!(with_scalar(And, DType::Int32, &[2.0, 0.0], half, false), [1.0, 0.0]);
    let tenth = Scalar::Real(Real(0.1));
    let want = [half::f16::from_f64(0.1).to_f64()];
    assert_eq!(with_scalar(Maximum, DType::Float16, &[0.0], tenth, false), want);
    let large = Scalar::Int(i64::MAX - 1);
    assert_eq!(with_scalar(Eq, DType::Int64, &[9.2e18], large, false), [0.0]);
}

#[test]
fn shapes_broadcast_and_results_keep_their_order() {
    let mut random = Random::new(3);
    let last =
        Meta { strides: smallvec::smallvec![12, 1, 4], ..Meta::new(DType::Float32, [2, 4, 3]) };
    let (a, b) = (random.tensor(last.clone()), random.tensor(Meta::new(DType::Float32, [4, 1])));
    let sum = apply(&Binary { f: BinaryFn::Add }, &[&b, &a], 1).unwrap().remove(0);
    assert_eq!(sum.meta, last);
    let (x, y) = (a.values(), b.values());
    let want: Vec<f64> = (0..24).map(|i| x[i] + y[i / 3 % 4]).collect();
    assert_eq!(sum.values(), want);
    let (p, q) = (Meta::new(DType::Float32, [2]), Meta::new(DType::Float64, [2]));
    let infer = |inputs: &[&Meta]| Binary { f: BinaryFn::Add }.infer(inputs);
    assert!(matches!(infer(&[&p, &q]), Err(Error::DType { .. })));
    let r = Meta::new(DType::Float32, [3]);
    assert!(matches!(infer(&[&p, &r]), Err(Error::Shape { .. })));
    let empty = Meta::new(DType::Float32, [0, 1]);
    assert_eq!(infer(&[&p, &empty]).unwrap()[0].shape, [0, 2].into());
}

#[test]
fn names_in_text() {
    let text = r#"{"op":"binary_scalar","f":"floor_divide","scalar":2,"reverse":true}"#;
    let kind: crate::ops::Kind = serde_json::from_str(text).unwrap();
    assert_eq!(kind.family().name(), "floor_divide_scalar");
    let text = r#"{"op":"binary","f":"and"}"#;
    let kind: crate::ops::Kind = serde_json::from_str(text).unwrap();
    assert_eq!(kind, Binary { f: BinaryFn::And }.into());
}
