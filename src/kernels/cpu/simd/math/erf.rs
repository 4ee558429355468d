//! The error function and the normal distribution.

use std::f64::consts::FRAC_1_SQRT_2;

use super::exp::{exp_64, exp_f32};
use super::{mad, poly, poly64};
use crate::kernels::cpu::simd::isa::Level;

/// 1 / sqrt(2 pi).
pub(super) const FRAC_1_SQRT_2PI: f64 = 0.398_942_280_401_432_7;

/// The error function.
#[inline(always)]
pub fn erf_f32<L: Level>(x: f32) -> f32 {
    let a = x.abs();
    let q = x * x;
    let series = [
        0.128_379_17,
        -0.376_126_35,
        0.112_836_97,
        -0.026_859_5,
        0.005_201_286,
        -0.000_814_559_87,
        8.382_395e-5,
    ];
    let small = mad::<L>(a, poly::<L, 7>(q, series), a);
    // From 4 on the result rounds to 1; NaN passes through.
    let t = if a > 4.0 { 4.0 } else { a };
    let minus_log_erfc = [
        -0.000_173_240_5,
        1.129_508_1,
        0.633_360_27,
        0.108_265_8,
        -0.025_110_437,
        0.004_167_742,
        -0.000_433_795_88,
        2.103_894_4e-5,
    ];
    let large = 1.0 - exp_f32::<L>(-poly::<L, 8>(t, minus_log_erfc));
    (if a < 0.92 { small } else { large }).copysign(x)
}

/// (q, e) whose product is half the complementary error function of t >= 0, to 1e-10; e is
/// e^(-t^2).
#[inline(always)]
fn half_erfc_64<L: Level>(t: f64) -> (f64, f64) {
    let u = 1.0 / (1.0 + 0.4 * t);
    // erfc(t) e^(t^2) / u.
    let scaled = [
        0.22567216435017015,
        0.22578170886281285,
        0.20626250389139508,
        0.1817687477481023,
        0.07113410020929616,
        0.23775340678925466,
        -0.3860454703608539,
        0.6506907066230648,
        -0.758388496017544,
        0.48286196371752094,
        -0.15922436216892522,
        0.021733026240742942,
    ];
    (0.5 * u * poly64::<L, 12>(u, scaled), exp_64::<L>(-t * t))
}

/// x times the standard normal distribution function, for x from -1e4 on.
#[inline(always)]
pub fn gelu_f32<L: Level>(x: f32) -> f32 {
    let x = x as f64;
    let (q, e) = half_erfc_64::<L>(x.abs() * FRAC_1_SQRT_2);
    (x * if x < 0.0 { q * e } else { 1.0 - q * e }) as f32
}

/// The derivative of [`gelu_f32`], for x within ±1e4.
#[inline(always)]
pub fn gelu_slope_f32<L: Level>(x: f32) -> f32 {
    let x = x as f64;
    let (q, e) = half_erfc_64::<L>(x.abs() * FRAC_1_SQRT_2);
    let rise = x * FRAC_1_SQRT_2PI;
    (if x < 0.0 { e * (q + rise) } else { 1.0 + e * (rise - q) }) as f32
}
