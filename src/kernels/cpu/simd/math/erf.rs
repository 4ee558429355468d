//! The error function and the normal distribution.

use std::f64::consts::FRAC_1_SQRT_2;

use super::exp::{exp_64, exp_f32, half_gauss};
use super::log::{log_64, log1p_64};
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
/// e^(-t^2), and q alone is as exact up to t = 10, where e is 0 in float32.
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

/// 1 minus the error function, accurate where it is small, too.
#[inline(always)]
pub fn erfc_f32<L: Level>(x: f32) -> f32 {
    let (q, e) = half_erfc_64::<L>((x as f64).abs());
    let tail = 2.0 * q * e;
    (if x < 0.0 { 2.0 - tail } else { tail }) as f32
}

/// The parts of [`half_erfc_64`] whose product is the normal distribution function of -|x|.
#[inline(always)]
fn normal_tail_64<L: Level>(x: f32) -> (f64, f64) {
    half_erfc_64::<L>((x as f64).abs() * FRAC_1_SQRT_2)
}

/// The standard normal distribution function.
#[inline(always)]
pub fn ndtr_f32<L: Level>(x: f32) -> f32 {
    let (q, e) = normal_tail_64::<L>(x);
    (if x < 0.0 { q * e } else { 1.0 - q * e }) as f32
}

/// [`normal_tail_64`], whose q is exact in the far tail, too: an asymptotic series.
#[inline(always)]
fn normal_far_tail_64<L: Level>(x: f32) -> (f64, f64) {
    let (near, e) = normal_tail_64::<L>(x);
    let a = (x as f64).abs();
    let series = poly64::<L, 6>(1.0 / (a * a), [1.0, -1.0, 3.0, -15.0, 105.0, -945.0]);
    let far = FRAC_1_SQRT_2PI * series / a;
    (if a > 14.0 { far } else { near }, e)
}

/// Its logarithm.
#[inline(always)]
pub fn log_ndtr_f32<L: Level>(x: f32) -> f32 {
    let (q, e) = normal_far_tail_64::<L>(x);
    let x = x as f64;
    (if x < 0.0 { log_64::<L>(q) - 0.5 * x * x } else { log1p_64::<L>(-q * e) }) as f32
}

/// The derivative of [`log_ndtr_f32`].
#[inline(always)]
pub fn log_ndtr_slope_f32<L: Level>(x: f32) -> f32 {
    let (q, e) = normal_far_tail_64::<L>(x);
    (FRAC_1_SQRT_2PI * if x < 0.0 { 1.0 / q } else { e / (1.0 - q * e) }) as f32
}

/// The standard normal density.
#[inline(always)]
pub fn density_f32<L: Level>(x: f32) -> f32 {
    let x = x as f64;
    (FRAC_1_SQRT_2PI * exp_64::<L>(-0.5 * x * x)) as f32
}

/// What the normal distribution function and its density have in common at -|x|.
struct NormalParts {
    /// |x|, but at most 15, from where on `density` is 0.
    a: f32,
    /// 1 / (a + 2.875), whose product with `scaled` and `density` is the distribution function.
    r: f32,
    scaled: f32,
    /// e^(-a^2 / 2) in three factors, to be multiplied in this order: results may be denormal.
    density: [f32; 3],
}

impl NormalParts {
    #[inline(always)]
    fn new<L: Level>(x: f32) -> Self {
        let a = x.abs();
        // NaN passes through.
        let a = if a > 15.0 { 15.0 } else { a };
        let r = 1.0 / (a + 2.875);
        // Half the complementary error function of a / sqrt(2), times e^(a^2 / 2) / r, by a r.
        let scaled = [
            1.437_5,
            -1.860_002,
            0.783_193_65,
            0.285_340_96,
            -0.191_899_69,
            -0.056_133_058,
            -0.162_023_2,
            0.245_237_42,
            -0.082_302_57,
        ];
        NormalParts { a, r, scaled: poly::<L, 9>(a * r, scaled), density: half_gauss::<L>(a) }
    }

    /// The product of `factor` and e^(-a^2 / 2).
    #[inline(always)]
    fn times_density(&self, factor: f32) -> f32 {
        let [m, power, rest] = self.density;
        factor * m * power * rest
    }
}

/// x times the standard normal distribution function.
#[inline(always)]
pub fn gelu_f32<L: Level>(x: f32) -> f32 {
    if !L::FMA {
        // Without fused multiply-add, the square's rounding error would not be known.
        let x = if x < -1e4 { -1e4 } else { x as f64 };
        let (q, e) = half_erfc_64::<L>(x.abs() * FRAC_1_SQRT_2);
        let y = x * if x < 0.0 { q * e } else { 1.0 - q * e };
        return y as f32;
    }
    let parts = NormalParts::new::<L>(x);
    let minus_tail = parts.times_density(parts.a * parts.r * parts.scaled);
    (if x >= 0.0 { x } else { -0.0 }) - minus_tail
}

/// The derivative of [`gelu_f32`].
#[inline(always)]
pub fn gelu_slope_f32<L: Level>(x: f32) -> f32 {
    if !L::FMA {
        let x = x.clamp(-1e4, 1e4) as f64;
        let (q, e) = half_erfc_64::<L>(x.abs() * FRAC_1_SQRT_2);
        let rise = x * FRAC_1_SQRT_2PI;
        return (if x < 0.0 { e * (q + rise) } else { 1.0 + e * (rise - q) }) as f32;
    }
    let parts = NormalParts::new::<L>(x);
    let rise = -FRAC_1_SQRT_2PI as f32;
    let below = parts.times_density(mad::<L>(parts.a, rise, parts.r * parts.scaled));
    if x < 0.0 { below } else { 1.0 - below }
}
