//! Trigonometric functions and their inverses.

use super::{mad64, poly64};
use crate::kernels::cpu::simd::isa::Level;

/// The binary digits of 2/pi, from 2^1 on, 64 per word.
const TWO_OVER_PI: [u64; 4] =
    [0x28be_60db_9391_054a, 0x7f09_d5f4_7d4d_3770, 0x36d8_a566_4f10_e410, 0x7f94_58ea_f7ae_f158];

/// 128 digits of 2/pi from position `e` < 128 on.
#[inline(always)]
fn digits(e: u32) -> (u64, u64) {
    let [a, b, c, d] = TWO_OVER_PI;
    let (x, y, z) = if e < 64 { (a, b, c) } else { (b, c, d) };
    let (left, right) = (e & 63, 63 - (e & 63));
    (x << left | y >> 1 >> right, y << left | z >> 1 >> right)
}

/// An integer below 2^52 as float64.
#[inline(always)]
fn small_integer(n: u64) -> f64 {
    const TWO_52: u64 = 0x4330_0000_0000_0000;
    f64::from_bits(TWO_52 | n) - f64::from_bits(TWO_52)
}

/// 2^e 2/pi modulo 4 as three summands, the first two of which have so few digits (29) that their
/// products with 24 digits are exact.
#[inline(always)]
fn quarters(e: u32) -> [f64; 3] {
    let (first, second) = digits(e);
    let high = small_integer(first >> 35);
    let middle = small_integer(first >> 6 & 0x1fff_ffff);
    let low = small_integer((first & 63) << 46 | second >> 18);
    [high / (1u64 << 27) as f64, middle / (1u64 << 56) as f64, low / TWO_108]
}

const TWO_108: f64 = (1u64 << 54) as f64 * (1u64 << 54) as f64;

/// Adding and subtracting it rounds to the nearest integer, which is in the low bits of the sum.
const ROUND_64: f64 = 6_755_399_441_055_744.0;

/// (number of quarter turns, remainder in radians within ±pi/4) for any angle |x|, by the method of
/// Payne and Hanek: only the digits of 2/pi that matter at x's exponent are multiplied.
#[inline(always)]
fn quadrant(x: f32) -> (u64, f64) {
    let magnitude = x.to_bits() & 0x7fff_ffff;
    // |x| = m 2^e, with e = 0 for all |x| below 2^24.
    let e = (magnitude >> 23).saturating_sub(150);
    let m = f32::from_bits(magnitude - (e << 23)) as f64;
    let [high, middle, low] = quarters(e & 127);
    let product = m * high;
    let shifted = product + ROUND_64;
    let rest = (product - (shifted - ROUND_64)) + m * middle;
    // The middle part can push it past a half once more.
    let again = rest + ROUND_64;
    let rest = (rest - (again - ROUND_64)) + m * low;
    let n = shifted.to_bits().wrapping_add(again.to_bits()).wrapping_sub(2 * ROUND_64.to_bits());
    let not_finite = magnitude >= 0x7f80_0000;
    (n, (if not_finite { f64::NAN } else { rest }) * std::f64::consts::FRAC_PI_2)
}

/// Sine and cosine of r within ±pi/4, to 1e-13.
#[inline(always)]
fn sin_cos_64<L: Level>(r: f64) -> (f64, f64) {
    let q = r * r;
    let sin = [
        -0.16666666666627966,
        0.008333333324611284,
        -0.00019841263456881668,
        2.7555279048060612e-06,
        -2.475589161750001e-08,
    ];
    let cos = [
        0.041666666666595534,
        -0.0013888888877396878,
        2.4801580583350844e-05,
        -2.755549625030886e-07,
        2.0643159429337696e-09,
    ];
    let sine = mad64::<L>(r * q, poly64::<L, 5>(q, sin), r);
    (sine, mad64::<L>(q * q, poly64::<L, 5>(q, cos), mad64::<L>(q, -0.5, 1.0)))
}

/// Sine and cosine after `n` quarter turns and `r` radians.
#[inline(always)]
fn turned<L: Level>(n: u64, r: f64) -> (f64, f64) {
    let (s, c) = sin_cos_64::<L>(r);
    let odd = n & 1 != 0;
    let (sine, cosine) = (if odd { c } else { s }, if odd { s } else { c });
    let flip = |v: f64, bit: u64| f64::from_bits(v.to_bits() ^ (bit & 2) << 62);
    (flip(sine, n), flip(cosine, n.wrapping_add(1)))
}

/// The sine of an angle of any size.
#[inline(always)]
pub fn sin_f32<L: Level>(x: f32) -> f32 {
    let (n, r) = quadrant(x);
    let sine = turned::<L>(n, r).0 as f32;
    if x.is_sign_negative() { -sine } else { sine }
}

/// The cosine of an angle of any size.
#[inline(always)]
pub fn cos_f32<L: Level>(x: f32) -> f32 {
    let (n, r) = quadrant(x);
    turned::<L>(n, r).1 as f32
}

/// The tangent of an angle of any size.
#[inline(always)]
pub fn tan_f32<L: Level>(x: f32) -> f32 {
    let (n, r) = quadrant(x);
    let (sine, cosine) = turned::<L>(n, r);
    let tangent = (sine / cosine) as f32;
    if x.is_sign_negative() { -tangent } else { tangent }
}

/// Sine and cosine of `t` full turns, |t| below 2^40, as the Box-Muller method needs them.
#[inline(always)]
pub fn sin_cos_of_turns_f32<L: Level>(t: f32) -> (f32, f32) {
    let quarters = 4.0 * t as f64;
    let shifted = quarters + ROUND_64;
    let r = (quarters - (shifted - ROUND_64)) * std::f64::consts::FRAC_PI_2;
    let (sine, cosine) = turned::<L>(shifted.to_bits().wrapping_sub(ROUND_64.to_bits()), r);
    (sine as f32, cosine as f32)
}

/// Sine and cosine of `t` half turns; of integers from 2^51 on, 0 and 1.
#[inline(always)]
pub(super) fn sin_cos_of_half_turns_64<L: Level>(t: f64) -> (f64, f64) {
    // The rest after whole turns is exact.
    let quarters = 2.0 * (t - 2.0 * (0.5 * t).round_ties_even());
    let shifted = quarters + ROUND_64;
    let r = (quarters - (shifted - ROUND_64)) * std::f64::consts::FRAC_PI_2;
    turned::<L>(shifted.to_bits().wrapping_sub(ROUND_64.to_bits()), r)
}

/// The arc tangent.
#[inline(always)]
pub fn atan_f32<L: Level>(x: f32) -> f32 {
    let a = (x as f64).abs();
    let steep = a > 1.0;
    let z = if steep { 1.0 / a } else { a };
    let tail = [
        -0.33333333130229664,
        0.19999985333782364,
        -0.14285343352970759,
        0.11106369722135123,
        -0.0905495335963478,
        0.07515379183968487,
        -0.06068680320130582,
        0.044366844394817515,
        -0.026745897136540145,
        0.011911008165449552,
        -0.003377227717114734,
        0.0004491949305543224,
    ];
    let q = z * z;
    let y = mad64::<L>(z * q, poly64::<L, 12>(q, tail), z);
    ((if steep { std::f64::consts::FRAC_PI_2 - y } else { y }) as f32).copysign(x)
}

/// (whether |x| > 1/2, y): asin|x| is y, or pi/2 - 2 y if |x| > 1/2.
#[inline(always)]
fn half_angle<L: Level>(x: f32) -> (bool, f64) {
    let a = (x as f64).abs();
    let big = a > 0.5;
    let q = if big { 0.5 * (1.0 - a) } else { a * a };
    let s = if big { q.sqrt() } else { a };
    let tail = [
        0.16666666626724694,
        0.07500005042183304,
        0.044640687668358964,
        0.030426843203035826,
        0.02186299855476745,
        0.02065907812816697,
        0.0019483737643332583,
        0.03294181955715731,
    ];
    (big, mad64::<L>(s * q, poly64::<L, 8>(q, tail), s))
}

/// The arc sine; NaN beyond ±1.
#[inline(always)]
pub fn asin_f32<L: Level>(x: f32) -> f32 {
    let (big, y) = half_angle::<L>(x);
    let y = if big { std::f64::consts::FRAC_PI_2 - 2.0 * y } else { y };
    (y as f32).copysign(x)
}

/// The arc cosine; NaN beyond ±1.
#[inline(always)]
pub fn acos_f32<L: Level>(x: f32) -> f32 {
    use std::f64::consts::{FRAC_PI_2, PI};
    let (big, y) = half_angle::<L>(x);
    let far = if x < 0.0 { PI - 2.0 * y } else { 2.0 * y };
    let near = FRAC_PI_2 - y.copysign(x as f64);
    (if big { far } else { near }) as f32
}
