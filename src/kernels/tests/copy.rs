//! Copies, casts, fills, ranges and concatenations.

use super::*;
use crate::ops::copy::*;

const NOTHING: [Tensor; 0] = [];

fn tensor(dtype: DType, values: &[f64]) -> Tensor {
    Tensor::new(Meta::new(dtype, [values.len()]), values)
}

/// A value after NumPy's conversion, where NumPy defines it.
fn converted(value: f64, to: DType) -> f64 {
    crate::dispatch!(to, T => crate::dtype::Element::to_f64(<T as crate::dtype::Element>::from_f64(value)))
}

#[test]
fn casts_between_all_types() {
    let values = [0.0, 1.0, 2.0, 3.0, 100.0, 57.0, 0.0, 9.0];
    let fractions = [0.75, -0.75, 2.5, -1.0, 100.0, 1e-30, -3.99, 9.0];
    for from in DType::ALL {
        for to in DType::ALL {
            let inputs = if from.is_float() && to != DType::UInt8 { fractions } else { values };
            let x = tensor(from, &inputs);
            let made = apply(&Cast { dtype: to }, &[&x], 1).unwrap();
            let want: Vec<f64> = x.values().into_iter().map(|v| converted(v, to)).collect();
            assert_eq!(made[0].values(), want, "{from} to {to}");
        }
    }
}

#[test]
fn casts_of_transposed_matrices() {
    for shape in [[9, 40], [0, 9], [9, 0], [1, 9]] {
        let values: Vec<f64> = (0..shape[0] * shape[1]).map(|v| v as f64).collect();
        let x = Tensor::strided(DType::Int32, &shape, &[1, shape[0] as isize], &values);
        let made = apply(&Cast { dtype: DType::Float32 }, &[&x], 1).unwrap();
        assert_eq!(made[0].values(), values, "{shape:?}");
    }
}

#[test]
fn casts_at_the_ends() {
    let cast = |from, to, values: &[f64]| {
        apply(&Cast { dtype: to }, &[&tensor(from, values)], 1).unwrap()[0].values()
    };
    let wild = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 300.0];
    assert_eq!(cast(DType::Float32, DType::Int8, &wild), [0.0, 127.0, -128.0, 127.0]);
    assert_eq!(cast(DType::Float32, DType::Bool, &wild), [1.0; 4]);
    assert_eq!(cast(DType::Int32, DType::UInt8, &[-1.0, 256.0]), [255.0, 0.0]);
    // 2049 is halfway between two float16; a little more rounds up, but only if rounded once.
    let x = 2049.0 + 1e-9;
    assert_eq!(cast(DType::Float64, DType::Float16, &[x, 2049.0]), [2050.0, 2048.0]);
    assert_eq!(cast(DType::Float32, DType::BFloat16, &[257.0, 259.0]), [256.0, 260.0]);
    let tiny = cast(DType::Float32, DType::BFloat16, &[f64::NAN, 1e39, -1e-40]);
    assert!(tiny[0].is_nan() && tiny[1] == f64::INFINITY && tiny[2] < 0.0);
}

#[test]
fn casts_keep_the_order_and_the_bits() {
    let mut random = Random::new(2);
    let meta = random.layout(DType::Float32, &[4, 5, 300]);
    let x = random.tensor(meta);
    for dtype in [DType::BFloat16, DType::Float16, DType::Int32] {
        let y = apply(&Cast { dtype }, &[&x], 3).unwrap().remove(0);
        assert_eq!(y.meta, x.meta.like(dtype));
        let want: Vec<f64> = x.values().into_iter().map(|v| converted(v, dtype)).collect();
        assert_eq!(y.values(), want);
    }
}

/// The result of converting a value to a dtype, if the dtype represents it.
fn held(value: f64, from: DType, to: DType) -> Option<f64> {
    let made = converted(value, to);
    let rounds = from.is_float() && to.is_float() && made.is_finite();
    let same = made == value || !value.is_finite() && to.is_float();
    (rounds || same).then_some(made)
}

#[test]
fn conversions_keep_values_or_name_one_that_is_lost() {
    let ends = [127.0, 128.0, 255.0, -129.0, 2049.0, 65_504.0, 65_520.0, 16_777_217.0, -2e9, 1e30];
    let values = [&ends[..], &[0.0, 1.0, -1.0, 0.5, 0.1, 1e300, f64::NAN, f64::INFINITY]].concat();
    for from in DType::ALL {
        for to in DType::ALL {
            for &value in &values {
                let x = Tensor::new(Meta::new(from, [3]), &[1.0, value, 1.0]);
                let value = x.values()[1];
                if from.is_int() && value.abs() > 9e18 {
                    continue; // float64 cannot distinguish its largest integers
                }
                let made = apply(&Convert { dtype: to }, &[&x], 2);
                match held(value, from, to) {
                    Some(want) => {
                        let got = made.unwrap()[0].values()[1];
                        let same = got == want || got.is_nan() && want.is_nan();
                        assert!(same, "{value}, {from} to {to}: {got}");
                    }
                    None => {
                        let text = made.unwrap_err().to_string();
                        assert!(text.ends_with(&format!("hold, not {value}")), "{text}");
                    }
                }
            }
        }
    }
}

#[test]
fn integers_of_64_bits_are_converted_exactly() {
    let convert =
        |from, to, value: f64| apply(&Convert { dtype: to }, &[&tensor(from, &[value])], 1).is_ok();
    // The largest int64 reads as 2^63 in float64, which is not an int64.
    assert!(!convert(DType::Int64, DType::Float64, i64::MAX as f64));
    assert!(convert(DType::Int64, DType::Float16, i64::from(u16::MAX / 2 + 1) as f64));
    assert!(!convert(DType::Float64, DType::Int64, 9_223_372_036_854_775_808.0));
    assert!(convert(DType::Float64, DType::Int64, -9_223_372_036_854_775_808.0));
    assert!(!convert(DType::UInt64, DType::Float64, u64::MAX as f64));
    assert!(!convert(DType::UInt64, DType::Int64, 9_223_372_036_854_775_808.0));
    assert!(convert(DType::UInt64, DType::BFloat16, 9_223_372_036_854_775_808.0));
    assert!(!convert(DType::Float64, DType::UInt64, 18_446_744_073_709_551_616.0));
    assert!(convert(DType::Float64, DType::UInt64, 9_223_372_036_854_775_808.0));
    assert!(!convert(DType::Int64, DType::UInt64, -1.0));
    assert!(!convert(DType::Float64, DType::Float32, 3.402_823_6e38));
}

#[test]
fn fills_any_view() {
    for dtype in DType::ALL {
        let fill = Fill { value: Scalar::Int(1), shape: [40, 700].into(), dtype };
        let strided = Random::new(4).layout(dtype, &[40, 700]);
        for output in [Meta::new(dtype, [40, 700]), strided] {
            let kernel = cpu::Cpu.prepare(&fill.clone().into(), &[&output], Width(2)).unwrap();
            assert_eq!(run(&*kernel, &NOTHING, &[output]).unwrap()[0].values(), [1.0; 28_000]);
        }
    }
    let bad = |value, dtype| Fill { value, shape: [2].into(), dtype }.infer(&[]);
    assert!(bad(Scalar::Int(256), DType::UInt8).is_err());
    assert!(bad(Scalar::Int(2049), DType::Float16).is_err());
    assert!(bad(Scalar::Int(2050), DType::Float16).is_ok());
    assert!(bad(Scalar::Int(i64::MAX), DType::Float64).is_err());
    assert!(bad(Scalar::Real(Real(1e39)), DType::Float32).is_err());
    assert!(bad(Scalar::Real(Real(0.1)), DType::Float16).is_ok());
    assert!(bad(Scalar::Real(Real(f64::NAN)), DType::Int32).is_err());
    let none = Fill { value: Scalar::Int(0), shape: [0, 3].into(), dtype: DType::Bool };
    assert!(apply(&none, &NOTHING, 1).unwrap()[0].values().is_empty());
}

#[test]
fn ranges() {
    let real = |v| Scalar::Real(Real(v));
    let range =
        |start, step, count, dtype| apply(&Arange { start, step, count, dtype }, &NOTHING, 2);
    let values = |r: Result<Vec<Tensor>>| r.unwrap()[0].values();
    let down = range(Scalar::Int(5), Scalar::Int(-2), 4, DType::Int8);
    assert_eq!(values(down), [5.0, 3.0, 1.0, -1.0]);
    let tenths = values(range(real(0.0), real(0.1), 4000, DType::Float32));
    assert!(tenths.iter().enumerate().all(|(i, v)| *v == (i as f64 * 0.1) as f32 as f64));
    assert!(matches!(
        range(Scalar::Int(0), Scalar::Int(1), 129, DType::Int8),
        Err(Error::Value { .. })
    ));
    assert!(range(Scalar::Int(0), Scalar::Int(1), 128, DType::Int8).is_ok());
    assert!(range(Scalar::Int(i64::MAX), Scalar::Int(1), 2, DType::Int64).is_err());
    assert!(matches!(range(real(0.5), Scalar::Int(1), 2, DType::Int32), Err(Error::DType { .. })));
    assert!(values(range(Scalar::Int(0), Scalar::Int(1), 0, DType::Int32)).is_empty());
    assert!(range(Scalar::Int(0), Scalar::Int(1), 2, DType::Bool).is_err());
    assert!(range(Scalar::Int(65_000), Scalar::Int(1000), 2, DType::Float16).is_err());
    assert!(range(Scalar::Int(65_000), Scalar::Int(1000), 1, DType::Float16).is_ok());
}

#[test]
fn joins_along_any_axis() {
    let mut random = Random::new(8);
    for (axis, shapes) in [(0, [[2, 3], [0, 3], [5, 3]]), (-1, [[4, 300], [4, 1], [4, 7]])] {
        let layouts = shapes.map(|s| random.layout(DType::Float16, &s));
        let tensors = layouts.map(|m| random.tensor(m));
        let made = apply(&Concat { axis }, &tensors.each_ref(), 2).unwrap().remove(0);
        let rows = |t: &Tensor| {
            let values = t.values();
            let columns = t.meta.shape[1];
            values.chunks(columns).map(<[f64]>::to_vec).collect::<Vec<_>>()
        };
        let parts = tensors.each_ref().map(rows);
        let want: Vec<f64> = match axis {
            0 => parts.concat().concat(),
            _ => (0..4).flat_map(|r| parts.iter().flat_map(move |p| p[r].clone())).collect(),
        };
        assert_eq!(made.values(), want);
    }
}

#[test]
fn joins_keep_channels_last_and_refuse_what_does_not_fit() {
    let last =
        Meta { strides: smallvec::smallvec![1, 20, 4, 1], ..Meta::new(DType::Int8, [1, 4, 5, 5]) };
    let last = Meta { strides: smallvec::smallvec![100, 1, 20, 4], ..last };
    let join = |inputs: &[&Meta]| Concat { axis: 1 }.infer(inputs);
    assert_eq!(join(&[&last, &last]).unwrap()[0].strides.as_slice(), &[200, 1, 40, 8]);
    let [a, b, c] = [[2, 3], [3, 3], [2, 4]].map(|s| Meta::new(DType::Int8, s));
    assert!(matches!(join(&[&a, &b]), Err(Error::Shape { .. })));
    assert_eq!(join(&[&a, &c]).unwrap()[0].shape, [2, 7].into());
    assert!(matches!(join(&[]), Err(Error::Arity { .. })));
    assert!(matches!(join(&[&a, &Meta::new(DType::Int8, [2])]), Err(Error::Shape { .. })));
    assert!(matches!(join(&[&a, &Meta::new(DType::Int32, [2, 3])]), Err(Error::DType { .. })));
    assert!(join(&[&Meta::new(DType::Int8, [2])]).is_err());
}

#[test]
fn kinds_as_text() {
    for text in [
        r#"{"op":"copy"}"#,
        r#"{"op":"where"}"#,
        r#"{"op":"cast","dtype":"bfloat16"}"#,
        r#"{"op":"convert","dtype":"int8"}"#,
        r#"{"op":"fill","value":1.5,"shape":[2,3],"dtype":"float32"}"#,
        r#"{"op":"arange","start":0,"step":1,"count":3,"dtype":"int32"}"#,
        r#"{"op":"concat","axis":-1}"#,
    ] {
        let kind: Kind = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&kind).unwrap(), text);
    }
}
