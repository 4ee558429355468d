//! Attention against a plain loop in float64, in all its variants.

use crate::dtype::DType;
use crate::kernels::testing::{Tensor, apply_any_width, assert_near, noise, tolerance};
use crate::ops::attention::{Attention, AttentionGrad, Rule};
use crate::ops::{Family, Meta, Real};

const PLAIN: Rule = Rule {
    scale: Real(0.3),
    causal: false,
    dropout: Real(0.0),
    mask: false,
    lengths: false,
    start: false,
};

/// An attention of (batches, heads, heads of keys, queries, keys, width, width of values).
struct Case {
    sizes: [usize; 7],
    rule: Rule,
    dtype: DType,
    extra: Vec<Tensor>,
}

impl Case {
    fn new(sizes: [usize; 7]) -> Self {
        Case { sizes, rule: PLAIN, dtype: DType::Float32, extra: Vec::new() }
    }

    fn qkv(&self) -> [Tensor; 3] {
        let [n, h, g, l, s, e, f] = self.sizes;
        let of = |shape: [usize; 4], seed| {
            Tensor::dense(self.dtype, &shape, &noise(shape.iter().product(), seed))
        };
        [of([n, h, l, e], 1), of([n, g, s, e], 2), of([n, g, s, f], 3)]
    }

    /// What is added to a score; None where the query may not attend to the key.
    fn bias(&self, at: [usize; 4]) -> Option<f64> {
        let [n, h, _, l, s, _, _] = self.sizes;
        let [b, head, i, j] = at;
        let mut extra = self.extra.iter();
        let mut bias = 0.0;
        if self.rule.mask {
            let mask = extra.next().unwrap();
            let value = mask.values()[((b * h + head) * l + i) * s + j];
            let is_bool = mask.meta.dtype == DType::Bool;
            bias = match is_bool {
                true if value == 0.0 => return None,
                true => 0.0,
                false => value,
            };
        }
        let mut number = |given: bool, none: usize| match given {
            true => extra.next().unwrap().values()[b % n] as usize,
            false => none,
        };
        let (length, start) = (number(self.rule.lengths, s), number(self.rule.start, 0));
        let seen = j < length && (!self.rule.causal || j <= start + i);
        (seen && bias != f64::NEG_INFINITY).then_some(bias)
    }

    /// The weights of a query.
    fn weights(&self, [q, k]: [&[f64]; 2], [b, head, i]: [usize; 3]) -> Vec<f64> {
        let [_, h, g, l, s, e, _] = self.sizes;
        let (q, shared) = (&q[((b * h + head) * l + i) * e..][..e], head / (h / g));
        let score = |j: usize| {
            let k = &k[((b * g + shared) * s + j) * e..][..e];
            let product: f64 = q.iter().zip(k).map(|(a, b)| a * b).sum();
            self.bias([b, head, i, j])
                .map_or(f64::NEG_INFINITY, |x| product * self.rule.scale.0 + x)
        };
        let scores: Vec<f64> = (0..s).map(score).collect();
        let most = scores.iter().copied().fold(f64::MIN, f64::max);
        let all: Vec<f64> = scores.iter().map(|x| (x - most).exp()).collect();
        let total: f64 = all.iter().sum();
        all.iter().map(|x| if total > 0.0 { x / total } else { 0.0 }).collect()
    }

    fn reference(&self) -> Vec<f64> {
        let [n, h, g, l, s, _, f] = self.sizes;
        let [q, k, v] = self.qkv().map(|t| t.values());
        let mut y = Vec::new();
        for (b, head, i) in queries([n, h, l]) {
            let weights = self.weights([&q, &k], [b, head, i]);
            let values = |j: usize, c: usize| v[((b * g + head / (h / g)) * s + j) * f + c];
            y.extend((0..f).map(|c| (0..s).map(|j| weights[j] * values(j, c)).sum::<f64>()));
        }
        y
    }

    /// (dq, dk, dv), of a gradient of the result.
    fn gradients(&self, dy: &[f64]) -> [Vec<f64>; 3] {
        let [n, h, g, l, s, e, f] = self.sizes;
        let [q, k, v] = self.qkv().map(|t| t.values());
        let mut made = [&q, &k, &v].map(|t| vec![0.0; t.len()]);
        let [dq, dk, dv] = &mut made;
        for (b, head, i) in queries([n, h, l]) {
            let weights = self.weights([&q, &k], [b, head, i]);
            let (row, shared) = ((b * h + head) * l + i, b * g + head / (h / g));
            let dy = &dy[row * f..][..f];
            let key = |j: usize| shared * s + j;
            let to = |j: usize| (0..f).map(|c| dy[c] * v[key(j) * f + c]).sum::<f64>();
            let own: f64 = (0..s).map(|j| weights[j] * to(j)).sum();
            for j in 0..s {
                let slope = weights[j] * (to(j) - own) * self.rule.scale.0;
                (0..f).for_each(|c| dv[key(j) * f + c] += weights[j] * dy[c]);
                (0..e).for_each(|c| dq[row * e + c] += slope * k[key(j) * e + c]);
                (0..e).for_each(|c| dk[key(j) * e + c] += slope * q[row * e + c]);
            }
        }
        made
    }

    /// Compares results and gradients with the reference, and threads with each other.
    #[track_caller]
    fn check(&self) {
        let [n, h, _, l, _, _, f] = self.sizes;
        let forward = Attention { rule: self.rule.clone(), offset: 0 };
        let inputs: Vec<Tensor> = self.qkv().into_iter().chain(self.extra.clone()).collect();
        let made = apply_any_width(&forward, &inputs).unwrap();
        let near = 4.0 * tolerance(self.dtype);
        assert_near(&made[0].values(), &self.reference(), near, "the result");
        let dy = Tensor::dense(self.dtype, &[n, h, l, f], &noise(n * h * l * f, 4));
        let backward = AttentionGrad { rule: self.rule.clone(), scores: false };
        let mut all = vec![dy.clone()];
        all.extend(self.qkv().into_iter().chain(made).chain(self.extra.clone()));
        let got = apply_any_width(&backward, &all).unwrap();
        let want = self.gradients(&dy.values());
        for ((got, want), what) in got.iter().zip(want).zip(["dq", "dk", "dv"]) {
            assert_near(&got.values(), &want, 8.0 * near, what);
        }
    }
}

fn queries([n, h, l]: [usize; 3]) -> impl Iterator<Item = (usize, usize, usize)> {
    (0..n * h * l).map(move |row| (row / (h * l), row / l % h, row % l))
}

fn int64(values: &[f64]) -> Tensor {
    Tensor::dense(DType::Int64, &[values.len()], values)
}

#[test]
fn lengths_around_the_sides_of_blocks() {
    for [l, s] in [[1, 1], [3, 4], [9, 513], [127, 64], [130, 300], [257, 129]] {
        for causal in [false, true] {
            let mut case = Case::new([1, 2, 2, l, s, 8, 5]);
            case.rule.causal = causal;
            case.check();
        }
    }
}

#[test]
fn every_float_and_grouped_heads() {
    for dtype in [DType::Float32, DType::Float64, DType::Float16, DType::BFloat16] {
        for [h, g] in [[4, 4], [4, 2], [6, 1]] {
            let mut case = Case::new([2, h, g, 12, 70, 16, 24]);
            (case.dtype, case.rule.causal) = (dtype, h == 4);
            case.check();
        }
    }
}

#[test]
fn numbers_of_keys_and_positions() {
    for causal in [false, true] {
        let mut case = Case::new([3, 2, 1, 5, 140, 8, 8]);
        case.rule = Rule { causal, lengths: true, start: true, ..PLAIN };
        case.extra = vec![int64(&[140.0, 0.0, 77.0]), int64(&[0.0, 9.0, 135.0])];
        case.check();
    }
}

#[test]
fn masks_of_truth_and_of_numbers() {
    for dtype in [DType::Bool, DType::Float32] {
        for scale in [0.3, 0.0, -0.4] {
            let mut case = Case::new([2, 2, 2, 20, 90, 8, 8]);
            case.rule = Rule { mask: true, scale: Real(scale), ..PLAIN };
            let values = noise(2 * 2 * 20 * 90, 9);
            let never = if dtype == DType::Bool { 0.0 } else { f64::NEG_INFINITY };
            let hide = |(i, x): (usize, &f64)| if *x > 0.4 || i < 90 { never } else { *x };
            let values: Vec<f64> = values.iter().enumerate().map(hide).collect();
            case.extra = vec![Tensor::dense(dtype, &[2, 2, 20, 90], &values)];
            case.check();
        }
    }
}

#[test]
fn dropped_weights_are_the_same_in_both_directions() {
    let mut case = Case::new([1, 2, 1, 70, 200, 4, 200]);
    case.rule.dropout = Real(0.5);
    // With the unit matrix as values, results are weights.
    let [q, k, _] = case.qkv();
    let unit: Vec<f64> = (0..200 * 200).map(|i| f64::from(i % 201 == 0)).collect();
    let v = Tensor::dense(DType::Float32, &[1, 1, 200, 200], &unit);
    let forward = Attention { rule: case.rule.clone(), offset: 3 };
    let inputs = [q.clone(), k.clone(), v.clone(), int64(&[5.0, 7.0])];
    let made = apply_any_width(&forward, &inputs).unwrap();
    let kept = made[0].values().iter().filter(|x| **x != 0.0).count() as f64;
    assert!((kept / 28_000.0 - 0.5).abs() < 0.02, "{kept} of 28000");
    assert_eq!(made[2].values(), [5.0, 10.0]);
    let dy = Tensor::dense(DType::Float32, &[1, 2, 70, 200], &vec![1.0; 28_000]);
    let backward = AttentionGrad { rule: case.rule.clone(), scores: true };
    let [y, lse, drawn] = <[Tensor; 3]>::try_from(made).unwrap();
    let got = apply_any_width(&backward, &[dy, q, k, v, y.clone(), lse, drawn]).unwrap();
    // The gradient of a value is the sum of its weights.
    let y = y.values();
    let sums: Vec<f64> = (0..200).map(|j| (0..140).map(|i| y[i * 200 + j]).sum()).collect();
    let dv = got[2].values();
    for (j, sum) in sums.iter().enumerate() {
        assert!((dv[j * 200] - sum).abs() < 1e-4, "value {j}: {} not {sum}", dv[j * 200]);
    }
}

#[test]
fn results_lie_as_the_queries_do() {
    let meta = |heads: usize, length: usize, width: usize| Meta {
        dtype: DType::Float32,
        shape: [2, heads, length, width].into(),
        strides: [length * heads * width, width, heads * width, 1].map(|s| s as isize)[..].into(),
    };
    let case = Case::new([2, 3, 3, 40, 30, 8, 6]);
    let turned = [meta(3, 40, 8), meta(3, 30, 8), meta(3, 30, 6)];
    let inputs: Vec<Tensor> = turned
        .into_iter()
        .zip(case.qkv())
        .map(|(meta, dense)| Tensor::new(meta, &dense.values()))
        .collect();
    let forward = Attention { rule: PLAIN, offset: 0 };
    let made = apply_any_width(&forward, &inputs).unwrap();
    assert_eq!(made[0].meta, meta(3, 40, 6));
    assert_near(&made[0].values(), &case.reference(), 1e-4, "the result");
}

#[test]
fn nothing_to_attend() {
    for sizes in [[0, 2, 2, 3, 4, 5, 6], [1, 2, 2, 0, 4, 5, 6], [1, 2, 2, 3, 0, 5, 6]] {
        Case::new(sizes).check();
    }
    for sizes in [[1, 0, 0, 3, 4, 5, 6], [1, 2, 2, 3, 4, 0, 6], [1, 2, 2, 3, 4, 5, 0]] {
        let case = Case::new(sizes);
        let forward = Attention { rule: PLAIN, offset: 0 };
        assert!(apply_any_width(&forward, &case.qkv()).is_ok(), "{sizes:?}");
    }
}

#[test]
fn numbers_out_of_range_are_refused() {
    for (length, start) in [(5.0, 0.0), (-1.0, 0.0), (4.0, -1.0)] {
        let rule = Rule { causal: true, lengths: true, start: true, ..PLAIN };
        let forward = Attention { rule, offset: 0 };
        let [q, k, v] = Case::new([1, 1, 1, 3, 4, 5, 6]).qkv();
        let inputs = [q, k, v, int64(&[length]), int64(&[start])];
        let error = apply_any_width(&forward, &inputs).unwrap_err().to_string();
        assert!(error.starts_with("attention: got"), "{error}");
    }
}

#[test]
fn shapes_that_do_not_fit_are_refused() {
    let forward = Attention { rule: PLAIN, offset: 0 };
    let meta = |shape: &[usize]| Meta::new(DType::Float32, shape);
    let bad = [[[2, 3, 4], [2, 5, 3], [2, 5, 4]], [[3, 3, 4], [2, 5, 4], [2, 5, 4]]];
    for shapes in bad {
        let [q, k, v] = shapes.map(|shape| meta(&shape));
        assert!(forward.infer(&[&q, &k, &v]).is_err(), "{shapes:?}");
    }
}
