//! Logarithms and the inverse hyperbolic functions.

use super::{mad, mad64, poly, poly64};
use crate::kernels::cpu::simd::isa::Level;

const SQRT_HALF_BITS: u32 = std::f32::consts::FRAC_1_SQRT_2.to_bits();
const SQRT_HALF_BITS_64: u64 = std::f64::consts::FRAC_1_SQRT_2.to_bits();

/// The natural logarithm.
#[inline(always)]
pub fn log_f32<L: Level>(x: f32) -> f32 {
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    let denormal = x < f32::MIN_POSITIVE;
    let scaled = if denormal { x * 8_388_608.0 } else { x };
    // x = 2^e m with m from sqrt(1/2) to sqrt(2).
    let bits = scaled.to_bits().wrapping_sub(SQRT_HALF_BITS);
    let e = (bits as i32 >> 23) as f32 - if denormal { 23.0 } else { 0.0 };
    let f = f32::from_bits((bits & 0x7f_ffff).wrapping_add(SQRT_HALF_BITS)) - 1.0;
    let tail = [
        0.333_333_13,
        -0.250_000_1,
        0.200_021_19,
        -0.166_679_96,
        0.142_195_52,
        -0.124_055_885,
        0.118_881_61,
        -0.116_756_51,
        0.067_466_415,
    ];
    let q = f * f;
    let y = mad::<L>(e, LN2_LOW, f * q * poly::<L, 9>(f, tail));
    let y = mad::<L>(e, LN2_HIGH, mad::<L>(q, -0.5, y) + f);
    let y = if x == f32::INFINITY { x } else { y };
    let y = if x == 0.0 { f32::NEG_INFINITY } else { y };
    if x >= 0.0 { y } else { f32::NAN }
}

/// The natural logarithm to 1e-14, for arguments in the range of a float32 or its square.
#[inline(always)]
pub(super) fn log_64<L: Level>(x: f64) -> f64 {
    // The bias makes the exponent's bits non-negative, and 2^52 + e becomes a float without a
    // conversion that AVX2 lacks.
    const BIAS: u64 = 1024;
    const TWO_52: u64 = 0x4330_0000_0000_0000;
    let bits = x.to_bits().wrapping_sub(SQRT_HALF_BITS_64);
    let exponent = bits.wrapping_add(BIAS << 52) >> 52;
    let e = f64::from_bits(TWO_52 | exponent) - (f64::from_bits(TWO_52) + BIAS as f64);
    let m = f64::from_bits((bits & ((1 << 52) - 1)).wrapping_add(SQRT_HALF_BITS_64));
    let s = (m - 1.0) / (m + 1.0);
    let q = s * s;
    let tail = [
        0.6666666666630103,
        0.4000000019405717,
        0.28571394497706676,
        0.22224939414688222,
        0.18074550362786107,
        0.17389915607346265,
    ];
    let log_m = mad64::<L>(s * q, poly64::<L, 6>(q, tail), 2.0 * s);
    let y = mad64::<L>(e, std::f64::consts::LN_2, log_m);
    let y = if x == f64::INFINITY { x } else { y };
    let y = if x == 0.0 { f64::NEG_INFINITY } else { y };
    if x >= 0.0 { y } else { f64::NAN }
}

/// log(1 + u) for float32 results, accurate to the last place near 0, too.
#[inline(always)]
pub(super) fn log1p_64<L: Level>(u: f64) -> f64 {
    let y = 1.0 + u;
    // The rounding error of the addition.
    let lost = u - (y - 1.0);
    let sum = log_64::<L>(y) + lost / y;
    let special = (u == f64::INFINITY) | (u == -1.0);
    if special { log_64::<L>(y) } else { sum }
}

/// log(1 + x), accurate to the last place near 0, too.
#[inline(always)]
pub fn log1p_f32<L: Level>(x: f32) -> f32 {
    let y = log1p_64::<L>(x as f64) as f32;
    if x == 0.0 { x } else { y }
}

/// The logarithm of base 2: the error of the natural one is too small to show where it is whole.
#[inline(always)]
pub fn log2_f32<L: Level>(x: f32) -> f32 {
    (log_64::<L>(x as f64) * std::f64::consts::LOG2_E) as f32
}

/// The logarithm of base 10.
#[inline(always)]
pub fn log10_f32<L: Level>(x: f32) -> f32 {
    (log_64::<L>(x as f64) * std::f64::consts::LOG10_E) as f32
}

/// The inverse hyperbolic sine.
#[inline(always)]
pub fn asinh_f32<L: Level>(x: f32) -> f32 {
    let a = (x as f64).abs();
    let q = a * a;
    let u = a + q / (1.0 + (q + 1.0).sqrt());
    let y = log1p_64::<L>(u) as f32;
    (if a == f64::INFINITY { f32::INFINITY } else { y }).copysign(x)
}

/// The inverse hyperbolic cosine; NaN below 1.
#[inline(always)]
pub fn acosh_f32<L: Level>(x: f32) -> f32 {
    let t = x as f64 - 1.0;
    let y = log1p_64::<L>(t + (t * (t + 2.0)).sqrt()) as f32;
    if x >= 1.0 { y } else { f32::NAN }
}

/// The inverse hyperbolic tangent; NaN beyond ±1.
#[inline(always)]
pub fn atanh_f32<L: Level>(x: f32) -> f32 {
    let a = (x as f64).abs();
    let y = 0.5 * log1p_64::<L>(2.0 * a / (1.0 - a));
    (y as f32).copysign(x)
}
