use super::*;
use crate::ops::binary::{Binary, BinaryFn};
use crate::ops::conv::Conv;
use crate::ops::fold::*;
use crate::ops::gemm::Matmul;
use crate::ops::geometry::Geometry;
use crate::ops::norm::BatchNormInference;
use crate::ops::normalize::Normalize;

const EPS: Real = Real(1e-3);

/// Scale, bias, mean and var of `channels` channels.
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

/// A convolution or a product that a normalisation is folded into.
struct Layer {
    /// The shapes of its input and of its weights.
    shapes: [&'static [usize]; 2],
    /// The channel axis of the weights.
    axis: usize,
    /// The number of products per sum.
    terms: usize,
    /// Stride of the channels in the result.
    step: usize,
}

const CONVOLUTION: Layer =
    Layer { shapes: [&[2, 6, 7, 7], &[5, 6, 3, 3]], axis: 0, terms: 54, step: 49 };
const PRODUCT: Layer = Layer { shapes: [&[40, 90], &[90, 5]], axis: 1, terms: 90, step: 1 };

impl Layer {
    /// Its result, with a bias if there is one.
    fn apply(&self, x: &Tensor, w: &Tensor, bias: Option<&Tensor>) -> Vec<f64> {
        if self.shapes[1].len() == 2 {
            let product = apply(&Matmul, &[x, w], 1).unwrap().remove(0);
            let add = Binary { f: BinaryFn::Add };
            let sum = bias.map(|bias| apply(&add, &[&product, bias], 1).unwrap().remove(0));
            return sum.unwrap_or(product).values();
        }
        let geometry = Geometry::new(&[1, 1], &[1; 4], &[1, 1], 1);
        let inputs: Vec<&Tensor> = [x, w].into_iter().chain(bias).collect();
        apply(&Conv { geometry }, &inputs, 1).unwrap().remove(0).values()
    }

    /// Its greatest error with a normalisation folded in, relative to the documented bound.
    fn excess(&self, random: &mut Random, dtype: DType, has_bias: bool) -> f64 {
        let [x, w] = self.shapes.map(|shape| random.tensor(Meta::new(dtype, shape)));
        let [scale, bias, mean, var] = statistics(random, dtype, 5);
        let b = random.tensor(Meta::new(dtype, [5]));
        let b = has_bias.then_some(&b);
        let inputs: Vec<&Tensor> = [&w, &scale, &bias, &mean, &var].into_iter().chain(b).collect();
        let fold = FoldBatchNorm { eps: EPS, axis: self.axis };
        let folded = apply_any_width(&fold, &inputs).unwrap();
        let got = self.apply(&x, &folded[0], Some(&folded[1]));
        // The exact result, and the sums of magnitudes that the bound is relative to.
        let exact = self.apply(&wide(&x, |v| v), &wide(&w, |v| v), None);
        let sizes = self.apply(&wide(&x, f64::abs), &wide(&w, f64::abs), None);
        let [scale, bias, mean, var] = [&scale, &bias, &mean, &var].map(Tensor::values);
        let b = b.map_or(vec![0.0; 5], Tensor::values);
        let unit = if dtype == DType::Float64 { f64::EPSILON } else { f32::EPSILON.into() } / 2.0;
        let errors = (0..got.len()).map(|i| {
            let c = i / self.step % 5;
            let factor = scale[c] / (var[c] + EPS.0).sqrt();
            let want = (exact[i] + b[c] - mean[c]) * factor + bias[c];
            let shift = (b[c].abs() + mean[c].abs()) * factor.abs() + bias[c].abs();
            let bound = (self.terms + 3) as f64 * unit * (sizes[i] * factor.abs() + shift);
            (got[i] - want).abs() / bound
        });
        errors.fold(0.0, f64::max)
    }
}

/// A function of a tensor's elements, in float64.
fn wide(tensor: &Tensor, f: fn(f64) -> f64) -> Tensor {
    let values: Vec<f64> = tensor.values().into_iter().map(f).collect();
    Tensor::dense(DType::Float64, &tensor.meta.shape, &values)
}

#[test]
fn folded_layers_are_as_near_as_documented() {
    let mut random = Random::new(4);
    for layer in [CONVOLUTION, PRODUCT] {
        for dtype in [DType::Float32, DType::Float64] {
            for has_bias in [false, true] {
                let excess = layer.excess(&mut random, dtype, has_bias);
                assert!(excess <= 1.0, "{dtype:?}, {:?}: {excess}", layer.shapes);
            }
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
