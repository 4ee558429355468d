//! The exponential function and functions derived from it.

use super::{mad, mad64, poly, poly64};
use crate::kernels::cpu::simd::isa::Level;

/// Adding and subtracting it rounds a float32 to the nearest integer, which is in the low bits of
/// the sum.
const ROUND: f32 = 12_582_912.0;
/// The same for float64.
const ROUND_64: f64 = 6_755_399_441_055_744.0;

/// The logarithm of 2, as a sum: products of the first part and an exponent are exact.
const LN2_HIGH: f32 = 0.693_359_4;
const LN2_LOW: f32 = -2.121_944_4e-4;
/// (e^r - 1 - r) / r^2 for r of at most half the logarithm of 2, as a polynomial of r.
const TAIL: [f32; 5] = [0.499_999_94, 0.166_665_2, 0.041_668_4, 0.008_368_851, 0.001_381_431_9];

/// 2^(n/2) and 2^(n - n/2) for the integer in the low bits of `shifted`. Two factors, because
/// results may overflow or be denormal.
#[inline(always)]
fn powers_of_two(shifted: f32) -> (f32, f32) {
    let n = shifted.to_bits().wrapping_sub(ROUND.to_bits()) as i32;
    let half = n >> 1;
    let power = |n: i32| f32::from_bits((n.wrapping_add(127) as u32) << 23);
    (power(half), power(n.wrapping_sub(half)))
}

/// e to the power of x.
#[inline(always)]
pub fn exp_f32<L: Level>(x: f32) -> f32 {
    exp_pair::<L>(x).0
}

/// e to the power of x as a float32, and its rounding error.
#[inline(always)]
fn exp_pair<L: Level>(x: f32) -> (f32, f32) {
    let (y, low, (a, b)) = exp_parts::<L>(x);
    (y * a * b, low * a * b)
}

/// [`exp_pair`] without its power of two, returned as two factors: a product computed before
/// applying them is rounded once where the result is denormal.
#[inline(always)]
fn exp_parts<L: Level>(x: f32) -> (f32, f32, (f32, f32)) {
    // Beyond these the result is 0, even times 1e4, or infinity; NaN passes both comparisons.
    let x = if x > 89.0 { 89.0 } else { x };
    let x = if x < -120.0 { -120.0 } else { x };
    let shifted = mad::<L>(x, std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let high = mad::<L>(n, -LN2_HIGH, x);
    let r = mad::<L>(n, -LN2_LOW, high);
    // The rounding error of the line above.
    let low = mad::<L>(n, -LN2_LOW, high - r);
    let t = mad::<L>(r * r, poly::<L, 5>(r, TAIL), low) + r;
    let y = t + 1.0;
    (y, t - (y - 1.0), powers_of_two(shifted))
}

/// e^(-a^2 / 2) for a from 0 to 15, in factors to be multiplied in this order: the last two are powers
/// of two. Only a target with fused multiply-add knows the rounding error of the square, which
/// matters because the exponential is steep.
#[inline(always)]
pub(super) fn half_gauss<L: Level>(a: f32) -> [f32; 3] {
    let square = a * a;
    let low = mad::<L>(a, a, -square);
    let shifted = mad::<L>(square, -0.5 * std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = mad::<L>(n, -LN2_LOW, mad::<L>(n, -LN2_HIGH, -0.5 * square));
    let r = mad::<L>(low, -0.5, r);
    let m = mad::<L>(r * r, poly::<L, 5>(r, TAIL), r) + 1.0;
    let exponent = shifted.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127 + 64);
    [m, f32::from_bits(exponent << 23), f32::from_bits((127 - 64) << 23)]
}

/// e to the power of x for x up to 88, with 0 in the place of denormal results: what weights relative
/// to the greatest take.
#[inline(always)]
pub fn exp_flushed_f32<L: Level>(x: f32) -> f32 {
    // NaN passes the comparison; from -88 on, the power of two below is 0.
    let x = if x < -88.0 { -88.0 } else { x };
    let shifted = mad::<L>(x, std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = mad::<L>(n, -LN2_LOW, mad::<L>(n, -LN2_HIGH, x));
    let y = mad::<L>(r * r, poly::<L, 5>(r, TAIL), r) + 1.0;
    let exponent = shifted.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127);
    y * f32::from_bits(exponent << 23)
}

/// (2^n, e^r - 1) with x = n ln 2 + r, for float32 results: x is clamped to ±200.
#[inline(always)]
fn reduced_64<L: Level>(x: f64) -> (f64, f64) {
    let x = clamped_64(x);
    let shifted = mad64::<L>(x, std::f64::consts::LOG2_E, ROUND_64);
    parts_64::<L>(shifted, mad64::<L>(shifted - ROUND_64, -std::f64::consts::LN_2, x))
}

/// x within ±200, or NaN.
#[inline(always)]
fn clamped_64(x: f64) -> f64 {
    let x = if x > 200.0 { 200.0 } else { x };
    if x < -200.0 { -200.0 } else { x }
}

/// (2^n, e^r - 1) for the integer n in the low bits of `shifted`, and r of at most half the logarithm
/// of 2.
#[inline(always)]
fn parts_64<L: Level>(shifted: f64, r: f64) -> (f64, f64) {
    let tail = [
        0.4999999999976663,
        0.16666666666560553,
        0.04166666691660324,
        0.008333333424292454,
        0.0013888816663641809,
        0.00019841072581184362,
        2.4878878838346062e-05,
        2.7698080914531943e-06,
    ];
    let n = shifted.to_bits().wrapping_sub(ROUND_64.to_bits());
    (f64::from_bits(n.wrapping_add(1023) << 52), mad64::<L>(r * r, poly64::<L, 8>(r, tail), r))
}

/// e^x to 1e-12, for float32 results.
#[inline(always)]
pub(super) fn exp_64<L: Level>(x: f64) -> f64 {
    let (scale, p) = reduced_64::<L>(x);
    mad64::<L>(scale, p, scale)
}

/// 2^x, exact for integers.
#[inline(always)]
pub fn exp2_f32<L: Level>(x: f32) -> f32 {
    let x = clamped_64(x as f64);
    let shifted = x + ROUND_64;
    let (scale, p) = parts_64::<L>(shifted, (x - (shifted - ROUND_64)) * std::f64::consts::LN_2);
    mad64::<L>(scale, p, scale) as f32
}

/// e^x - 1, accurate to the last place near 0, too.
#[inline(always)]
pub fn expm1_f32<L: Level>(x: f32) -> f32 {
    let (scale, p) = reduced_64::<L>(x as f64);
    let y = mad64::<L>(scale, p, scale - 1.0) as f32;
    // Keeps the sign of zero.
    if x == 0.0 { x } else { y }
}

/// 1 / (1 + e^-x).
#[inline(always)]
pub fn sigmoid_f32<L: Level>(x: f32) -> f32 {
    let (e, e_low) = exp_pair::<L>(-x.abs());
    let bottom = 1.0 + e;
    let bottom_low = e - (bottom - 1.0) + e_low;
    let negative = x < 0.0;
    let (top, top_low) = (if negative { e } else { 1.0 }, if negative { e_low } else { 0.0 });
    let y = top / bottom;
    // One step of refinement; 1 / (1 + e) is already known.
    let reciprocal = if negative { 1.0 - y } else { y };
    mad::<L>(mad::<L>(-y, bottom_low, top_low), reciprocal, y)
}

/// x / (1 + e^-x), for x from -1e4 on.
#[inline(always)]
pub fn silu_f32<L: Level>(x: f32) -> f32 {
    let (m, m_low, (a, b)) = exp_parts::<L>(-x.abs());
    let negative = x < 0.0;
    if !L::FMA {
        // Without fused multiply-add, each product below would be rounded once more.
        let (m, power) = (m as f64 + m_low as f64, a as f64 * b as f64);
        let top = x as f64 * if negative { m } else { 1.0 };
        return (top / (1.0 + m * power) * if negative { power } else { 1.0 }) as f32;
    }
    let (e, e_low) = (m * a * b, m_low * a * b);
    let bottom = 1.0 + e;
    let bottom_low = e - (bottom - 1.0) + e_low;
    let (top, top_low) = (if negative { m } else { 1.0 }, if negative { m_low } else { 0.0 });
    // 1 / bottom, accurate enough for the rounding errors.
    let reciprocal = mad::<L>(-0.5, e, 1.0);
    let low = mad::<L>(-top, bottom_low * reciprocal, top_low);
    let y = mad::<L>(x, top, x * low) / bottom;
    let y = if negative { y * a * b } else { y };
    if x > 1e4 { x } else { y }
}

/// The derivative of [`silu_f32`], for x within ±1e4.
#[inline(always)]
pub fn silu_slope_f32<L: Level>(x: f32) -> f32 {
    let (m, _, (a, b)) = exp_parts::<L>(-x.abs());
    let large = 1.0 / (1.0 + m * a * b);
    let small = m * large;
    // s and 1 - s, each to the last place: s is the small one for negative x.
    if x < 0.0 {
        small * mad::<L>(x, large, 1.0) * a * b
    } else {
        large * mad::<L>(x, small * a * b, 1.0)
    }
}

/// e^(-x^2).
#[inline(always)]
pub fn gauss_f32<L: Level>(x: f32) -> f32 {
    let x = x as f64;
    exp_64::<L>(-x * x) as f32
}

/// log(1 + e^x), which is x for large x and does not overflow.
#[inline(always)]
pub fn softplus_f32<L: Level>(x: f32) -> f32 {
    let e = exp_64::<L>(-(x as f64).abs());
    let positive = if x < 0.0 { 0.0 } else { x as f64 };
    // log(1 + e) for e from 0 to 1, as twice the inverse hyperbolic tangent.
    let s = e / (2.0 + e);
    let tail = [
        0.6666666635914033,
        0.4000005299905019,
        0.2856839614950769,
        0.22301498977483583,
        0.17147861588880023,
        0.2179235870288515,
    ];
    let q = s * s;
    let log = mad64::<L>(s * q, poly64::<L, 6>(q, tail), 2.0 * s);
    (positive + log) as f32
}

/// The hyperbolic tangent.
#[inline(always)]
pub fn tanh_f32<L: Level>(x: f32) -> f32 {
    let a = x.abs();
    let q = x * x;
    let tail = [-0.333_332_8, 0.133_314_42, -0.053_739_715, 0.020_639_084, -0.005_704_984_5];
    let small = mad::<L>(a * q, poly::<L, 5>(q, tail), a);
    let large = 1.0 - 2.0 / (exp_f32::<L>(2.0 * a) + 1.0);
    (if a < 0.625 { small } else { large }).copysign(x)
}

/// The hyperbolic sine.
#[inline(always)]
pub fn sinh_f32<L: Level>(x: f32) -> f32 {
    let a = (x as f64).abs();
    let q = a * a;
    let tail = [
        0.166666666670691,
        0.008333333276341176,
        0.00019841296045564036,
        2.755206404775756e-06,
        2.5529820508954652e-08,
    ];
    let small = mad64::<L>(a * q, poly64::<L, 5>(q, tail), a);
    let e = exp_64::<L>(a);
    let large = 0.5 * (e - 1.0 / e);
    ((if a < 1.0 { small } else { large }) as f32).copysign(x)
}

/// The hyperbolic cosine.
#[inline(always)]
pub fn cosh_f32<L: Level>(x: f32) -> f32 {
    let e = exp_64::<L>((x as f64).abs());
    (0.5 * (e + 1.0 / e)) as f32
}
