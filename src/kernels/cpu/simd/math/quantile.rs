//! Inverses of the normal distribution function and of the error function: the rational functions
//! of Wichura (1988), algorithm AS 241, exact to 2e-16.

use std::f64::consts::FRAC_1_SQRT_2;

use super::log::log_64;
use super::poly64;
use crate::kernels::cpu::simd::isa::{Baseline, Level};

/// The quotient of two polynomials.
#[inline(always)]
fn ratio<L: Level>(x: f64, above: [f64; 8], below: [f64; 8]) -> f64 {
    poly64::<L, 8>(x, above) / poly64::<L, 8>(x, below)
}

/// Near the median, divided by q, for q^2 = 0.180625 - r.
#[inline(always)]
fn central<L: Level>(r: f64) -> f64 {
    let above = [
        3.387_132_872_796_366_5,
        133.141_667_891_784_38,
        1_971.590_950_306_551_3,
        13_731.693_765_509_46,
        45_921.953_931_549_87,
        67_265.770_927_008_7,
        33_430.575_583_588_13,
        2_509.080_928_730_122_7,
    ];
    let below = [
        1.0,
        42.313_330_701_600_91,
        687.187_007_492_057_9,
        5_394.196_021_424_751,
        21_213.794_301_586_597,
        39_307.895_800_092_71,
        28_729.085_735_721_943,
        5_226.495_278_852_854,
    ];
    ratio::<L>(r, above, below)
}

/// The size where s, the root of minus the logarithm of the tail, is up to 5.
#[inline(always)]
fn outer<L: Level>(s: f64) -> f64 {
    let above = [
        1.423_437_110_749_683_5,
        4.630_337_846_156_546,
        5.769_497_221_460_691,
        3.647_848_324_763_204_5,
        1.270_458_252_452_368_4,
        0.241_780_725_177_450_6,
        0.022_723_844_989_269_184,
        7.745_450_142_783_414e-4,
    ];
    let below = [
        1.0,
        2.053_191_626_637_759,
        1.676_384_830_183_803_8,
        0.689_767_334_985_1,
        0.148_103_976_427_480_08,
        0.015_198_666_563_616_457,
        5.475_938_084_995_345e-4,
        1.050_750_071_644_416_9e-9,
    ];
    ratio::<L>(s - 1.6, above, below)
}

/// The size where it is larger.
#[inline(always)]
fn far<L: Level>(s: f64) -> f64 {
    let above = [
        6.657_904_643_501_103,
        5.463_784_911_164_114,
        1.784_826_539_917_291_3,
        0.296_560_571_828_504_87,
        0.026_532_189_526_576_124,
        1.242_660_947_388_078_4e-3,
        2.711_555_568_743_487_6e-5,
        2.010_334_399_292_288_1e-7,
    ];
    let below = [
        1.0,
        0.599_832_206_555_888,
        0.136_929_880_922_735_8,
        0.014_875_361_290_850_615,
        7.868_691_311_456_133e-4,
        1.846_318_317_510_054_7e-5,
        1.421_511_758_316_446e-7,
        2.044_263_103_389_939_8e-15,
    ];
    ratio::<L>(s - 5.0, above, below)
}

/// The point up to which a standard normal variable is with probability 1/2 + q, where `tail` is
/// 1/2 - |q|, to all its digits, and `log` the logarithm. NaN for a negative tail.
#[inline(always)]
fn quantile<L: Level>(q: f64, tail: f64, log: impl Fn(f64) -> f64) -> f64 {
    let s = (-log(tail)).sqrt();
    let size = if s <= 5.0 { outer::<L>(s) } else { far::<L>(s) };
    let size = if tail == 0.0 { f64::INFINITY } else { size };
    if q.abs() <= 0.425 { q * central::<L>(0.180625 - q * q) } else { size.copysign(q) }
}

/// Twice the argument of [`quantile`] is the argument of the inverse error function.
#[inline(always)]
fn erfinv<L: Level>(x: f64, log: impl Fn(f64) -> f64) -> f64 {
    FRAC_1_SQRT_2 * quantile::<L>(0.5 * x, 0.5 * (1.0 - x.abs()), log)
}

#[inline(always)]
fn ndtri<L: Level>(p: f64, log: impl Fn(f64) -> f64) -> f64 {
    quantile::<L>(p - 0.5, if p < 0.5 { p } else { 1.0 - p }, log)
}

/// The inverse of the error function; NaN beyond ±1.
#[inline(always)]
pub fn erfinv_f32<L: Level>(x: f32) -> f32 {
    erfinv::<L>(x as f64, log_64::<L>) as f32
}

/// The inverse of the normal distribution function; NaN beyond 0 and 1.
#[inline(always)]
pub fn ndtri_f32<L: Level>(p: f32) -> f32 {
    ndtri::<L>(p as f64, log_64::<L>) as f32
}

/// [`erfinv_f32`] in float64.
pub fn erfinv_f64(x: f64) -> f64 {
    erfinv::<Baseline>(x, f64::ln)
}

/// [`ndtri_f32`] in float64.
pub fn ndtri_f64(p: f64) -> f64 {
    ndtri::<Baseline>(p, f64::ln)
}
