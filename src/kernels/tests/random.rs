//! Distributions, dropout, and independence of threads.

use super::*;
use crate::ops::random::{Distribution, Dropout, DropoutGrad, Random};

const FLOATS: [DType; 4] = [DType::Float32, DType::Float64, DType::Float16, DType::BFloat16];

fn state(seed: f64, position: f64) -> Tensor {
    Tensor::dense(DType::Int64, &[2], &[seed, position])
}

fn draw(dist: Distribution, dtype: DType, n: usize, position: f64) -> Vec<f64> {
    let random = Random { dist, shape: [n].into(), dtype, offset: 0 };
    apply_any_width(&random, &[state(7.0, position)]).unwrap()[0].values()
}

fn uniform(low: f64, high: f64) -> Distribution {
    Distribution::Uniform { low: Real(low), high: Real(high) }
}

fn normal(mean: f64, std: f64) -> Distribution {
    Distribution::Normal { mean: Real(mean), std: Real(std) }
}

fn bernoulli(p: f64) -> Distribution {
    Distribution::Bernoulli { p: Real(p) }
}

/// Mean and standard deviation.
fn moments(x: &[f64]) -> (f64, f64) {
    let n = x.len() as f64;
    let mean = x.iter().sum::<f64>() / n;
    (mean, (x.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt())
}

/// The chi-square statistic of counts that should be equal.
fn chi_square(counts: &[f64]) -> f64 {
    let want = counts.iter().sum::<f64>() / counts.len() as f64;
    counts.iter().map(|c| (c - want).powi(2) / want).sum()
}

#[test]
fn uniform_numbers_are_even_and_below_the_bound() {
    for dtype in FLOATS {
        let x = draw(uniform(-1.0, 3.0), dtype, 100_003, 0.0);
        assert!(x.iter().all(|v| (-1.0..3.0).contains(v)), "{dtype}");
        let (mean, std) = moments(&x);
        assert!((mean - 1.0).abs() < 0.02 && (std - 4.0 / 12f64.sqrt()).abs() < 0.02, "{dtype}");
        let mut counts = [0.0; 64];
        x.iter().for_each(|v| counts[((v + 1.0) * 16.0) as usize] += 1.0);
        // 63 degrees of freedom: 0.1% is above 103.
        assert!(chi_square(&counts) < 103.0 || dtype == DType::BFloat16, "{dtype}");
    }
    assert_eq!(draw(uniform(0.5, 0.5), DType::Float32, 5, 0.0), [0.5; 5]);
    let wide = draw(uniform(-3e38, 3e38), DType::Float32, 999, 0.0);
    assert!(wide.iter().all(|v| v.is_finite()));
}

#[test]
fn normal_numbers_have_the_right_moments_and_tails() {
    for dtype in FLOATS {
        let x = draw(normal(0.5, 2.0), dtype, 200_001, 3.0);
        let z: Vec<f64> = x.iter().map(|v| (v - 0.5) / 2.0).collect();
        let (mean, std) = moments(&z);
        let moment = |k| z.iter().map(|v| v.powi(k)).sum::<f64>() / z.len() as f64;
        assert!(mean.abs() < 0.01 && (std - 1.0).abs() < 0.01, "{dtype}: {mean} {std}");
        assert!(moment(3).abs() < 0.03 && (moment(4) - 3.0).abs() < 0.1, "{dtype}");
        let beyond = z.iter().filter(|v| v.abs() > 3.0).count() as f64 / z.len() as f64;
        assert!((beyond - 0.0027).abs() < 5e-4, "{dtype}: {beyond}");
        // Adjacent numbers come from one pair of uniform numbers, and must still be independent.
        let joint = z.windows(2).map(|w| w[0] * w[1]).sum::<f64>() / z.len() as f64;
        assert!(joint.abs() < 0.01, "{dtype}: {joint}");
    }
}

#[test]
fn bernoulli_numbers_of_every_dtype() {
    for dtype in DType::ALL {
        let x = draw(bernoulli(0.3), dtype, 50_001, 0.0);
        assert!(x.iter().all(|&v| v == 0.0 || v == 1.0));
        assert!((moments(&x).0 - 0.3).abs() < 0.01, "{dtype}");
        assert_eq!(draw(bernoulli(0.0), dtype, 999, 0.0), [0.0; 999]);
        assert_eq!(draw(bernoulli(1.0), dtype, 999, 0.0), [1.0; 999]);
    }
}

#[test]
fn the_position_counts_the_blocks_that_were_drawn() {
    for (dtype, dist) in [(DType::Float32, uniform(0.0, 1.0)), (DType::Float64, normal(0.0, 1.0))] {
        let first = Random { dist: dist.clone(), shape: [80].into(), dtype, offset: 0 };
        let draws = first.draws(&[]) as f64;
        let all = draw(dist.clone(), dtype, 160, 1e6);
        assert_eq!(all[..80], draw(dist.clone(), dtype, 80, 1e6));
        assert_eq!(all[80..], draw(dist, dtype, 80, 1e6 + draws));
    }
}

/// The results of `kind` for `inputs` from this position on, and the number of blocks it reads.
fn at(kind: Kind, inputs: &[Tensor], position: f64) -> (Vec<Vec<f64>>, u64) {
    let all: Vec<Tensor> = inputs.iter().cloned().chain([state(3.0, position)]).collect();
    let made = apply_any_width(&kind, &all).unwrap();
    let metas: Vec<&Meta> = all.iter().map(|a| &a.meta).collect();
    (made.iter().map(Tensor::values).collect(), kind.family().draws(&metas))
}

#[test]
fn an_offset_counts_from_the_position() {
    let check = |kind: Kind, inputs: &[Tensor]| {
        for offset in [0, 1, 7, 1 << 40] {
            let moved = kind.family().drawing_from(offset).unwrap();
            assert_eq!(at(moved, inputs, 5.0), at(kind.clone(), inputs, 5.0 + offset as f64));
        }
        let moved = kind.family().drawing_from(1).unwrap();
        assert_ne!(at(moved, inputs, 5.0), at(kind, inputs, 5.0));
    };
    for dtype in DType::ALL {
        let dists = [bernoulli(0.5), uniform(0.0, 1.0), normal(0.0, 1.0)];
        for dist in dists.into_iter().take(if dtype.is_float() { 3 } else { 1 }) {
            check(Random { dist, shape: [131].into(), dtype, offset: 0 }.into(), &[]);
        }
    }
    for dtype in FLOATS {
        let x = Tensor::dense(dtype, &[131], &noise(131, 4));
        check(Dropout { ratio: Real(0.5), offset: 0 }.into(), &[x]);
    }
    let draws_none: Kind = DropoutGrad { ratio: Real(0.5) }.into();
    assert!(draws_none.family().drawing_from(1).is_none());
}

#[test]
fn an_offset_of_zero_is_not_written() {
    let random = Random { dist: bernoulli(0.5), shape: [2].into(), dtype: DType::Bool, offset: 0 };
    let kinds: [Kind; 2] = [random.into(), Dropout { ratio: Real(0.5), offset: 0 }.into()];
    for kind in kinds {
        let text = |kind: &Kind| serde_json::to_string(kind).unwrap();
        assert!(!text(&kind).contains("offset"));
        let moved = kind.family().drawing_from(9).unwrap();
        assert!(text(&moved).contains(r#""offset":9"#));
        for kind in [kind, moved] {
            assert_eq!(serde_json::from_str::<Kind>(&text(&kind)).unwrap(), kind);
        }
    }
}

#[test]
fn dropout_follows_the_memory_order_of_its_input() {
    let shape = [3, 50, 7];
    for dtype in FLOATS {
        for strides in layouts(&shape) {
            let x = Tensor::strided(dtype, &shape, &strides, &noise(1050, 1));
            let dropout = Dropout { ratio: Real(0.25), offset: 0 };
            let got = apply_any_width(&dropout, &[x.clone(), state(1.0, 0.0)]).unwrap();
            assert_eq!(got[0].meta, x.meta.like(dtype));
            let grad =
                apply_any_width(&DropoutGrad { ratio: Real(0.25) }, &[x.clone(), got[1].clone()]);
            assert_eq!(grad.unwrap()[0].values(), got[0].values());
            let mask = got[1].values();
            assert!((moments(&mask).0 - 0.75).abs() < 0.05);
            for ((y, x), kept) in got[0].values().iter().zip(x.values()).zip(mask) {
                assert!((y - x * kept / 0.75).abs() < 1e-2, "{dtype}");
            }
        }
    }
}

#[test]
fn dropout_at_the_ends() {
    let x = Tensor::dense(DType::Float32, &[2], &[f64::NAN, 1.0]);
    let at = |ratio| {
        let dropout = Dropout { ratio: Real(ratio), offset: 0 };
        apply_any_width(&dropout, &[x.clone(), state(0.0, 0.0)]).map(|got| got[0].values())
    };
    assert_eq!(at(1.0).unwrap(), [0.0, 0.0]);
    assert!(matches!(at(0.0).unwrap()[..], [a, b] if a.is_nan() && b == 1.0));
    assert!(matches!(at(1.5), Err(Error::Value { .. })));
    let empty = Tensor::dense(DType::Float32, &[0, 4], &[]);
    assert!(
        apply_any_width(&Dropout { ratio: Real(0.5), offset: 0 }, &[empty, state(0.0, 0.0)])
            .is_ok()
    );
}

#[test]
fn attributes_are_read_and_checked() {
    let text =
        r#"{"op":"random","dist":{"normal":{"mean":0,"std":1.5}},"shape":[2,3],"dtype":"float16"}"#;
    let kind: crate::ops::Kind = serde_json::from_str(text).unwrap();
    let want =
        Random { dist: normal(0.0, 1.5), shape: [2, 3].into(), dtype: DType::Float16, offset: 0 };
    assert_eq!(kind, want.into());
    let state = Meta::new(DType::Int64, [2]);
    let infer = |dist, dtype| Random { dist, shape: [2].into(), dtype, offset: 0 }.infer(&[&state]);
    assert!(matches!(infer(uniform(0.0, 1.0), DType::Int32), Err(Error::DType { .. })));
    assert!(matches!(infer(uniform(1.0, 0.0), DType::Float32), Err(Error::Value { .. })));
    assert!(matches!(infer(normal(0.0, f64::NAN), DType::Float32), Err(Error::Value { .. })));
    assert!(matches!(infer(bernoulli(1.1), DType::Float32), Err(Error::Value { .. })));
}

#[test]
fn the_engine_advances_its_state() {
    let engine = crate::engine::host();
    let kind =
        Random { dist: uniform(0.0, 1.0), shape: [5].into(), dtype: DType::Float32, offset: 0 }
            .into();
    let state = engine.rng().state(&engine.turn(), crate::engine::Stream::Step).unwrap();
    let before = state.block.version();
    engine.submit(engine.turn(), &kind, Default::default()).unwrap();
    assert!(state.block.version() > before);
}
