//! Every function compared with float64, over the whole range of float32.

use super::*;
use crate::kernels::cpu::simd::isa::{self, Body, Isa};

/// Maps float32 to integers such that adjacent numbers differ by 1.
fn place(x: f32) -> i64 {
    let bits = x.to_bits();
    let magnitude = (bits & 0x7fff_ffff) as i64;
    if bits >> 31 == 1 { -magnitude } else { magnitude }
}

/// The error in units in the last place of the expected value, or of `least` if that is larger.
fn ulps(got: f32, want: f64, least: f64) -> f64 {
    let rounded = want as f32;
    if got.is_nan() || want.is_nan() {
        return if got.is_nan() == want.is_nan() { 0.0 } else { f64::INFINITY };
    }
    if got == rounded && got.is_sign_negative() == rounded.is_sign_negative() {
        return 0.0;
    }
    if got.is_infinite() || rounded.is_infinite() {
        return (place(got) - place(rounded)).abs() as f64;
    }
    let size = rounded.abs().max(f32::MIN_POSITIVE).max(least as f32);
    (got as f64 - want).abs() / (f32::from_bits(size.to_bits() + 1) - size) as f64
        + if got == 0.0 && rounded == 0.0 { f64::INFINITY } else { 0.0 }
}

fn samples() -> Vec<f32> {
    let mut all: Vec<f32> = (0..=u32::MAX).step_by(16_411).map(f32::from_bits).collect();
    all.extend((-2_000..2_000).map(|i| i as f32 * 0.01));
    all.extend((-20_000..20_000).map(|i| i as f32 * 0.006_1));
    let special = [0.0, f32::INFINITY, f32::NAN, 1.0, f32::MIN_POSITIVE, f32::MAX, 0.5, 1e-45];
    for x in special {
        for near in [x, x.next_up(), x.next_down()] {
            all.extend([near, -near]);
        }
    }
    all
}

struct Each<'a, F>(F, &'a [f32], &'a mut [f32]);

trait Function {
    fn at<L: Level>(&self, x: f32) -> f32;
}

impl<F: Function> Body for Each<'_, F> {
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(self) {
        for (y, x) in self.2.iter_mut().zip(self.1) {
            *y = self.0.at::<L>(*x);
        }
    }
}

type Reference = fn(f64) -> f64;

fn check<F: Function + Copy>(f: F, name: &str, [reference, terms]: [Reference; 2], limit: f64) {
    let xs = samples();
    for isa in Isa::ALL.into_iter().filter(|i| i.is_available()) {
        let mut ys = vec![0.0; xs.len()];
        isa::run(isa, Each(f, &xs, &mut ys));
        let ulps = |x: f64, y: f32| match f64::from(y) == reference(x) {
            true => 0.0, // also where there are no terms to be relative to
            false => ulps(y, reference(x), terms(x)),
        };
        let errors = xs.iter().zip(&ys).map(|(&x, &y)| (ulps(x as f64, y), x, y));
        let worst = errors.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
        println!("{name} {isa:?}: {worst:?}");
        assert!(
            worst.0 <= limit,
            "{name} on {isa:?}: {worst:?}, not {}",
            reference(worst.1 as f64)
        );
        one_by_one(f, name, isa, &xs[..4_096], &ys);
    }
}

/// A loop over one element must give the same bits as a loop over many.
fn one_by_one<F: Function + Copy>(f: F, name: &str, isa: Isa, xs: &[f32], ys: &[f32]) {
    for (x, y) in xs.iter().zip(ys) {
        let mut alone = [0.0];
        isa::run(isa, Each(f, &[*x], &mut alone));
        assert_eq!(alone[0].to_bits(), y.to_bits(), "{name} on {isa:?} of {x}");
    }
}

macro_rules! within {
    (@terms) => { |_| 0.0 };
    (@terms $terms:expr) => { $terms };
    ($($test:ident: $function:ident, $reference:expr, $limit:expr $(, $terms:expr)?;)*) => {$(
        #[test]
        fn $test() {
            #[derive(Clone, Copy)]
            struct F;
            impl Function for F {
                #[inline(always)]
                fn at<L: Level>(&self, x: f32) -> f32 {
                    $function::<L>(x)
                }
            }
            let references: [Reference; 2] = [$reference, within!(@terms $($terms)?)];
            check(F, stringify!($function), references, $limit);
        }
    )*};
}

/// Over all numbers: above its range as at its end, and 0 from where results may be 0.
#[inline(always)]
fn flushed<L: Level>(x: f32) -> f32 {
    let y = exp_flushed_f32::<L>(if x > 88.0 { 88.0 } else { x });
    let is_small = (0.0..2e-38).contains(&y);
    if x < -87.0 && is_small { 0.0 } else { y }
}

fn flushed_exp(x: f64) -> f64 {
    if x < -87.0 { 0.0 } else { (if x > 88.0 { 88.0 } else { x }).exp() }
}

within! {
    exp: exp_f32, f64::exp, 2.0;
    exp_flushed: flushed, flushed_exp, 2.0;
    expm1: expm1_f32, f64::exp_m1, 1.0;
    log: log_f32, f64::ln, 2.0;
    exp2: exp2_f32, f64::exp2, 1.0;
    log1p: log1p_f32, f64::ln_1p, 1.0;
    log2: log2_f32, f64::log2, 1.0;
    log10: log10_f32, f64::log10, 1.0;
    sigmoid: sigmoid_f32, |x| 1.0 / (1.0 + (-x).exp()), 2.0;
    softplus: softplus_f32, |x| if x > 0.0 { x + (-x).exp().ln_1p() } else { x.exp().ln_1p() }, 1.0;
    tanh: tanh_f32, f64::tanh, 2.0;
    sinh: sinh_f32, f64::sinh, 1.0;
    cosh: cosh_f32, f64::cosh, 1.0;
    asinh: asinh_f32, f64::asinh, 1.0;
    acosh: acosh_f32, f64::acosh, 1.0;
    atanh: atanh_f32, f64::atanh, 1.0;
    sin: sin_f32, f64::sin, 1.0;
    cos: cos_f32, f64::cos, 1.0;
    tan: tan_f32, f64::tan, 1.0;
    asin: asin_f32, f64::asin, 1.0;
    acos: acos_f32, f64::acos, 1.0;
    atan: atan_f32, f64::atan, 1.0;
    erf: erf_f32, libm::erf, 2.0;
    erfc: erfc_f32, libm::erfc, 1.0;
    ndtr: ndtr_f32, normal_cdf, 1.0;
    log_ndtr: log_ndtr_f32, double::log_ndtr, 1.0;
    log_ndtr_derivative: log_ndtr_slope_f32, double::log_ndtr_slope, 1.0;
    density: density_f32, |x| (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt(), 1.0;
    lgamma: lgamma_f32, libm::lgamma, 2.0, gamma_terms;
    digamma: digamma_f32, gamma::digamma_f64, 2.0, gamma_terms;
    erfinv: erfinv_f32, quantile::erfinv_f64, 1.0;
    ndtri: ndtri_f32, quantile::ndtri_f64, 1.0;
    gauss: gauss_f32, |x| (-x * x).exp(), 1.0;
    gelu_value: gelu_f32, gelu, 5.0;
    gelu_derivative: gelu_slope_f32, gelu_slope, 6.0, terms;
    silu_value: silu_within, silu, 2.0;
    silu_derivative: silu_slope_within, silu_slope, 5.0, terms;
}

/// `function` on numbers within these limits, which its callers ensure.
macro_rules! limited {
    ($($name:ident: $function:ident, $high:expr;)*) => {$(
        #[inline(always)]
        fn $name<L: Level>(x: f32) -> f32 {
            let x = if x < -1e4 { -1e4 } else { x };
            $function::<L>(if x > $high { $high } else { x })
        }
    )*};
}
limited! {
    silu_within: silu_f32, f32::INFINITY;
    silu_slope_within: silu_slope_f32, 1e4;
}

fn normal_cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x * 0.5f64.sqrt())
}

fn gelu(x: f64) -> f64 {
    if x == f64::NEG_INFINITY { -0.0 } else { x * normal_cdf(x) }
}

fn gelu_slope(x: f64) -> f64 {
    let rise = x * (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
    if x.is_infinite() { (x > 0.0) as u8 as f64 } else { normal_cdf(x) + rise }
}

fn silu(x: f64) -> f64 {
    if x == f64::NEG_INFINITY { -0.0 } else { x / (1.0 + (-x).exp()) }
}

fn silu_slope(x: f64) -> f64 {
    let [s, rest] = [x, -x].map(|x| 1.0 / (1.0 + (-x).exp()));
    if x.is_infinite() { (x > 0.0) as u8 as f64 } else { s * (1.0 + x * rest) }
}

/// The magnitude of the terms of the two slopes where they cancel.
fn terms(x: f64) -> f64 {
    if (-2.0..-0.5).contains(&x) { 0.1 } else { 0.0 }
}

/// The magnitude of what cancels near zeros below 0.
fn gamma_terms(x: f64) -> f64 {
    if x < 0.0 { 1.0 } else { 0.0 }
}

#[test]
fn powers_follow_the_standard_library() {
    let mut bases: Vec<f32> = (0..=u32::MAX).step_by(16_777_259).map(f32::from_bits).collect();
    bases.extend([0.0, -0.0, 1.0, -1.0, f32::INFINITY, f32::NEG_INFINITY, 0.999_999_94, 1.5]);
    let mut exponents = bases.clone();
    exponents.extend([2.0, -2.0, 3.0, -3.0, 0.5, -0.5, 16_777_215.0, 1e9, 127.5, -149.0]);
    for &x in &bases {
        for &y in &exponents {
            let (got, want) = (pow_f32::<isa::Baseline>(x, y), (x as f64).powf(y as f64));
            assert!(ulps(got, want, 0.0) <= 1.0, "{x} to the power of {y}: {got}, not {want}");
        }
    }
}

#[test]
fn turns_are_exact_at_quarters() {
    let at = sin_cos_of_turns_f32::<isa::Baseline>;
    assert_eq!((at(0.25), at(0.5).1, at(-0.25).0), ((1.0, 0.0), -1.0, -1.0));
    let (s, c) = at(0.125);
    assert!((s - c).abs() < 1e-7 && (s * s + c * c - 1.0).abs() < 1e-6);
}
