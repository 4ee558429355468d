//! The logarithm of the gamma function and its derivatives.
//!
//! Both functions climb to z = x + 6, where a few terms of Stirling's series are exact to the last
//! place of float64, by one product: Gamma(x + 6) = x (x + 1) ... (x + 5) Gamma(x).

use super::log::log_64;
use super::trigonometry::sin_cos_of_half_turns_64;
use super::{mad64, poly64};
use crate::kernels::cpu::simd::isa::Level;

/// How far is climbed.
const STEPS: f64 = 6.0;
/// Half the logarithm of 2 pi.
const LOG_SQRT_2PI: f64 = 0.918_938_533_204_672_8;

/// y (y + 1) ... (y + 5), with the sign of a zero.
#[inline(always)]
fn rising<L: Level>(y: f64) -> f64 {
    y * poly64::<L, 6>(y, [120.0, 274.0, 225.0, 85.0, 15.0, 1.0])
}

/// The derivative of [`rising`].
#[inline(always)]
fn rising_slope<L: Level>(y: f64) -> f64 {
    poly64::<L, 6>(y, [120.0, 548.0, 675.0, 340.0, 75.0, 6.0])
}

/// (whether x < 0, the positive one of x and 1 - x): the functions are reflected there.
#[inline(always)]
fn reflected(x: f64) -> (bool, f64) {
    (x < 0.0, if x < 0.0 { 1.0 - x } else { x })
}

/// log|Gamma(x)|; infinity at 0 and the negative integers.
#[inline(always)]
pub fn lgamma_f32<L: Level>(x: f32) -> f32 {
    let x = x as f64;
    let (negative, y) = reflected(x);
    let z = y + STEPS;
    let series = [
        0.08333333333333236,
        -0.0027777777752246028,
        0.0007936497004126825,
        -0.000595065819111199,
        0.0008293053160083598,
        -0.001487588329190427,
    ];
    let rest = poly64::<L, 6>(1.0 / (z * z), series) / z + LOG_SQRT_2PI;
    let stirling = mad64::<L>(z - 0.5, log_64::<L>(z), rest - z);
    // Gamma(x) Gamma(1 - x) = pi / sin(pi x).
    let sine = sin_cos_of_half_turns_64::<L>(x).0.abs();
    let product = rising::<L>(y);
    let factor = if negative { product * std::f64::consts::PI / sine } else { product };
    let log = log_64::<L>(factor);
    let value = if negative { log - stirling } else { stirling - log };
    // Where both logarithms cancel but for a rounding error.
    let value = if (x == 1.0) | (x == 2.0) { 0.0 } else { value };
    // Infinities would be subtracted from each other.
    (if x.abs() == f64::INFINITY { f64::INFINITY } else { value }) as f32
}

/// The derivative of log Gamma at y >= 0, if `log` is the logarithm.
#[inline(always)]
fn digamma_above<L: Level>(y: f64, log: impl Fn(f64) -> f64) -> f64 {
    let z = y + STEPS;
    let w = 1.0 / (z * z);
    let series = [
        0.08333333333313964,
        -0.008333333195217837,
        0.00396822104592352,
        -0.004163027686389495,
        0.007368600572933729,
        -0.015009721392381136,
    ];
    let stirling = log(z) - mad64::<L>(w, poly64::<L, 6>(w, series), 0.5 / z);
    let climb = rising_slope::<L>(y) / rising::<L>(y);
    // Far up one is the other, and the product would overflow.
    if y > 1e40 { log(y) } else { stirling - climb }
}

/// The digamma function, the derivative of log Gamma; NaN at the negative integers.
#[inline(always)]
pub fn digamma_f32<L: Level>(x: f32) -> f32 {
    let x = x as f64;
    let (negative, y) = reflected(x);
    let above = digamma_above::<L>(y, log_64::<L>);
    let (sine, cosine) = sin_cos_of_half_turns_64::<L>(x);
    let cotangent = if sine == 0.0 { f64::NAN } else { cosine / sine };
    (if negative { above - std::f64::consts::PI * cotangent } else { above }) as f32
}

/// [`digamma_f32`] in float64.
pub fn digamma_f64(x: f64) -> f64 {
    use crate::kernels::cpu::simd::isa::Baseline;
    let (negative, y) = reflected(x);
    let above = digamma_above::<Baseline>(y, f64::ln);
    if !negative {
        return above;
    }
    let (sine, cosine) = (std::f64::consts::PI * (x - x.round())).sin_cos();
    if sine == 0.0 { f64::NAN } else { above - std::f64::consts::PI * cosine / sine }
}

/// B(2j) / (2j)! of the Bernoulli numbers, from j = 1 on.
const BERNOULLI: [f64; 10] = [
    8.333333333333333e-2,
    -1.388888888888889e-3,
    3.306878306878307e-5,
    -8.267195767195768e-7,
    2.0876756987868097e-8,
    -5.284190138687493e-10,
    1.3382536530684679e-11,
    -3.3896802963225827e-13,
    8.586062056277845e-15,
    -2.174868698558062e-16,
];

/// n! times the sum of (q + k)^-(n+1) over all k from 0 on, for q > 0: terms one by one, and from
/// where they fall slowly the formula of Euler and Maclaurin.
fn scaled_zeta(n: i32, q: f64) -> f64 {
    let s = n as f64 + 1.0;
    // A factor of each term's base, so that neither the factorial nor a power overflows alone.
    let unit = (libm::lgamma(s) / s).exp();
    let start = s + 10.0;
    let count = (start - q).ceil().max(0.0) as u32;
    let terms: f64 = (0..count).rev().map(|k| (unit / (q + k as f64)).powi(n + 1)).sum();
    let z = q + count as f64;
    // The sum's tail is (unit / z)^n unit / n (1 + n / 2z + n (n+1) B(2) / 2! z^2 ...).
    let (mut tail, mut factor) = (0.0, n as f64 * s / (z * z));
    for (j, bernoulli) in BERNOULLI.iter().enumerate() {
        tail += bernoulli * factor;
        let next = s + 2.0 * j as f64;
        factor *= (next + 1.0) / z * ((next + 2.0) / z);
    }
    terms + (unit / z).powi(n) * (unit / n as f64) * (1.0 + n as f64 / (2.0 * z) + tail)
}

/// Derivative `n` >= 1 of the digamma function.
pub fn polygamma_f64(n: i32, x: f64) -> f64 {
    let sign = if n % 2 == 0 { -1.0 } else { 1.0 };
    if x == f64::INFINITY {
        return sign * 0.0;
    }
    if x > 0.0 {
        return sign * scaled_zeta(n, x);
    }
    // Below 0 the terms are those near the pole at r = 0, those above it, and as many below it as
    // x is away from it.
    let r = x - x.round();
    let unit = (libm::lgamma(n as f64 + 1.0) / (n as f64 + 1.0)).exp();
    let below = scaled_zeta(n, 1.0 - r) - scaled_zeta(n, 1.0 - x);
    sign * ((unit / r).powi(n + 1) + scaled_zeta(n, 1.0 + r) + sign * below)
}
