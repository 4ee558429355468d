use super::*;
use crate::dtype::DType;
use crate::ops::conv::Conv2d;
use crate::ops::geometry::Geometry;
use crate::ops::norm::BatchNormInference;
use crate::ops::normalize::Normalize;
use crate::ops::testing::{Random, Tensor, apply, apply_any_width};

const EPS: Real = Real(1e-3);

/// Scale, bias, mean and var of so many channels.
fn statistics(random: &mut Random, dtype: DType, channels: usize) -> [Tensor; 4] {
    [0, 1, 2, 3].map(|i| {
        let values = random.tensor(Meta::new(dtype, [channels])).values();
        let positive = values.iter().map(|v| if i == 3 { v.abs() + 0.1 } else { *v });
        Tensor::new(Meta::new(dtype, [channels]), &positive.collect::<Vec<_>>())
    })
}

#[test]
fn the_factor_is_that_of_batch_normalisation_to_the_bit() {
    let mut random = Random::new(3);
    for dtype in [DType::Float32, DType::Float64, DType::Float16] {
        let wide = if dtype == DType::Float64 { dtype } else { DType::Float32 };
        let x = random.tensor(Meta::new(dtype, [2, 5, 3, 3]));
        let [scale, bias, mean, var] = statistics(&mut random, wide, 5);
        let norm = BatchNormInference { eps: EPS };
        let want = apply(&norm, &[&x, &scale, &bias, &mean, &var], 1).unwrap();
        let factor = apply_any_width(&BatchNormFactor { eps: EPS }, &[&scale, &var]).unwrap();
        let pass = Normalize { adds: false, relu: false };
        let got = apply(&pass, &[&x, &mean, &factor[0], &bias], 1).unwrap();
        assert!(got == want, "{dtype:?}");
    }
}

/// The greatest error of a folded convolution over what the documentation states.
fn excess(random: &mut Random, dtype: DType, has_bias: bool) -> f64 {
    let [x, w] = [[2, 6, 7, 7], [5, 6, 3, 3]].map(|s| random.tensor(Meta::new(dtype, s)));
    let [scale, bias, mean, var] = statistics(random, dtype, 5);
    let b = random.tensor(Meta::new(dtype, [5]));
    let b = has_bias.then_some(&b);
    let geometry = Geometry { stride: [1, 1], padding: [1; 4], dilation: [1, 1], groups: 1 };
    let conv = Conv2d { geometry };
    let inputs: Vec<&Tensor> = [&w, &scale, &bias, &mean, &var].into_iter().chain(b).collect();
    let folded = apply_any_width(&FoldBatchNorm { eps: EPS, axis: 0 }, &inputs).unwrap();
    let got = apply(&conv, &[&x, &folded[0], &folded[1]], 1).unwrap().remove(0).values();
    // The sums of absolute values that the bound is relative to, and the exact result.
    let wide =
        |t: &Tensor| Tensor::new(Meta::new(DType::Float64, t.meta.shape.clone()), &t.values());
    let of = |f: fn(f64) -> f64, t: &Tensor| {
        Tensor::new(
            Meta::new(DType::Float64, t.meta.shape.clone()),
            &t.values().into_iter().map(f).collect::<Vec<_>>(),
        )
    };
    let exact = apply(&conv, &[wide(&x), wide(&w)], 1).unwrap().remove(0).values();
    let sizes = apply(&conv, &[of(f64::abs, &x), of(f64::abs, &w)], 1).unwrap().remove(0).values();
    let [scale, bias, mean, var] = [&scale, &bias, &mean, &var].map(Tensor::values);
    let b = b.map_or(vec![0.0; 5], Tensor::values);
    let unit = if dtype == DType::Float64 { f64::EPSILON } else { f64::from(f32::EPSILON) } / 2.0;
    let taps = 6.0 * 9.0;
    let errors = (0..got.len()).map(|i| {
        let c = i / 49 % 5;
        let factor = scale[c] / (var[c] + EPS.0).sqrt();
        let want = (exact[i] + b[c] - mean[c]) * factor + bias[c];
        let shift = (b[c].abs() + mean[c].abs()) * factor.abs() + bias[c].abs();
        (got[i] - want).abs() / ((taps + 3.0) * unit * (sizes[i] * factor.abs() + shift))
    });
    errors.fold(0.0, f64::max)
}

#[test]
fn a_folded_convolution_is_as_near_as_documented() {
    let mut random = Random::new(4);
    for dtype in [DType::Float32, DType::Float64] {
        for has_bias in [false, true] {
            let excess = excess(&mut random, dtype, has_bias);
            assert!(excess <= 1.0, "{dtype:?}: {excess}");
        }
    }
}

#[test]
fn other_shapes_and_types_are_refused() {
    let [w, c, other] = [&[3, 2][..], &[3], &[2]].map(|shape| Meta::new(DType::Float32, shape));
    let fold = FoldBatchNorm { eps: EPS, axis: 0 };
    assert!(matches!(fold.infer(&[&w, &c, &c, &c]), Err(Error::Arity { .. })));
    assert!(matches!(fold.infer(&[&w, &c, &c, &other, &c]), Err(Error::Shape { .. })));
    let half = Meta::new(DType::Float16, [3, 2]);
    assert!(matches!(fold.infer(&[&half, &c, &c, &c, &c]), Err(Error::DType { .. })));
    let factor = BatchNormFactor { eps: EPS };
    assert!(matches!(factor.infer(&[&c, &other]), Err(Error::Shape { .. })));
    assert!(matches!(factor.infer(&[&half, &half]), Err(Error::Shape { .. })));
}
