//! float64 functions that the standard library lacks, or has with less accuracy. Their tails are as
//! accurate as the rest, denormal results included: the arguments of exponentials come in two
//! parts, and a power of two factored out of them is multiplied last.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, LN_2};

use super::erf::FRAC_1_SQRT_2PI;

/// The square root of 1/2 minus `FRAC_1_SQRT_2`.
const SQRT_HALF_LOW: f64 = -4.833_646_656_726_457e-17;

/// 2^-144.
const POWER: f64 = 1.0 / (1u128 << 72) as f64 / (1u128 << 72) as f64;
/// Its logarithm, with so few digits that adding it to -600 and less is exact, and the remainder.
const LOG_POWER: [f64; 2] = [-99.813_194_000_627_85, -4.279_030_339_848_341_5e-12];
/// The logarithm of sqrt(2 pi) [`POWER`], likewise in two parts.
const LOG_DENSITY: [f64; 2] = [-98.894_255_467_414_04, -1.341_076_452_263_429_7e-11];

/// The square of x, and its rounding error.
fn square(x: f64) -> [f64; 2] {
    let y = x * x;
    [y, x.mul_add(x, -y)]
}

/// e^(x + low), where `low` is small.
fn exp([x, low]: [f64; 2]) -> f64 {
    let e = x.exp();
    low.mul_add(e, e)
}

/// e^(-x^2).
pub fn gauss(x: f64) -> f64 {
    if x.abs() > 30.0 {
        return 0.0;
    }
    exp(square(x).map(|part| -part))
}

/// Beyond this x^2 + 1 rounds to x^2, and x^2 may overflow.
const LARGE: f64 = 1e10;

/// The inverse hyperbolic sine.
pub fn asinh(x: f64) -> f64 {
    let a = x.abs();
    let near = a + a * a / (1.0 + a.mul_add(a, 1.0).sqrt());
    (if a > LARGE { a.ln() + LN_2 } else { near.ln_1p() }).copysign(x)
}

/// The inverse hyperbolic cosine; NaN below 1.
pub fn acosh(x: f64) -> f64 {
    let t = x - 1.0;
    match x {
        ..1.0 => f64::NAN, // where both terms cancel
        _ if x > LARGE => x.ln() + LN_2,
        _ => (t + (t * (t + 2.0)).sqrt()).ln_1p(),
    }
}

/// The inverse hyperbolic tangent; NaN beyond ±1.
pub fn atanh(x: f64) -> f64 {
    let a = x.abs();
    (0.5 * (2.0 * a / (1.0 - a)).ln_1p()).copysign(x)
}

/// Below this the sigmoid is e^x to the last place.
const SIGMOID_TAIL: f64 = -700.0;

/// e^x / [`POWER`] for x in the tail.
fn tail_exp(x: f64) -> f64 {
    exp([x - LOG_POWER[0], -LOG_POWER[1]])
}

/// x / (1 + e^-x).
pub fn silu(x: f64) -> f64 {
    if x < SIGMOID_TAIL { x * tail_exp(x) * POWER } else { x / (1.0 + (-x).exp()) }
}

/// The derivative of [`silu`].
pub fn silu_slope(x: f64) -> f64 {
    if x < SIGMOID_TAIL {
        return (1.0 + x) * tail_exp(x) * POWER;
    }
    let e = (-x.abs()).exp();
    let large = 1.0 / (1.0 + e);
    let small = e * large;
    let (s, rest) = if x < 0.0 { (small, large) } else { (large, small) };
    s * x.mul_add(rest, 1.0)
}

/// Below the first, the normal distribution function is its asymptotic series; above the second, 1.
const NORMAL_TAIL: f64 = -37.0;
const NORMAL_END: f64 = 40.0;
/// Below this it is less than the least denormal number.
const NORMAL_ZERO: f64 = -39.0;

/// The standard normal distribution function between them.
fn normal_cdf(x: f64) -> f64 {
    let z = -x * FRAC_1_SQRT_2;
    // The rounding error of the argument, which matters because erfc is steep.
    let low = (-x).mul_add(FRAC_1_SQRT_2, -z) - x * SQRT_HALF_LOW;
    0.5 * libm::erfc(z) - FRAC_2_SQRT_PI * 0.5 * (-z * z).exp() * low
}

/// The standard normal distribution function.
pub fn ndtr(x: f64) -> f64 {
    match x {
        ..NORMAL_ZERO => 0.0,
        ..NORMAL_TAIL => {
            let [density, series] = normal_tail(x);
            density * (series / -x) * POWER
        }
        _ if x > NORMAL_END => 1.0,
        _ => normal_cdf(x),
    }
}

/// Its logarithm.
pub fn log_ndtr(x: f64) -> f64 {
    if x < NORMAL_TAIL {
        let series = mills_series(1.0 / (x * x));
        return (FRAC_1_SQRT_2PI * series / -x).ln() - 0.5 * x * x;
    }
    if x < 0.0 { normal_cdf(x).ln() } else { (-ndtr(-x)).ln_1p() }
}

/// The derivative of [`log_ndtr`].
pub fn log_ndtr_slope(x: f64) -> f64 {
    if x < NORMAL_TAIL { -x / mills_series(1.0 / (x * x)) } else { density(x) / ndtr(x) }
}

/// The standard normal density.
pub fn density(x: f64) -> f64 {
    if x.abs() > -NORMAL_ZERO {
        return 0.0; // before its square overflows
    }
    FRAC_1_SQRT_2PI * exp(square(x).map(|part| -0.5 * part))
}

/// x times the distribution function / -density in the tail, by 1/x^2: 1 - 1/x^2 + 3/x^4 - 15/x^6 ...
fn mills_series(r: f64) -> f64 {
    let odd = [10_395.0, 945.0, 105.0, 15.0, 3.0, 1.0, 1.0];
    odd.iter().fold(0.0, |sum, term| term - r * sum)
}

/// For x in the tail: the density / [`POWER`], and [`mills_series`].
fn normal_tail(x: f64) -> [f64; 2] {
    let [q, low] = square(x);
    [exp([-0.5 * q - LOG_DENSITY[0], -0.5 * low - LOG_DENSITY[1]]), mills_series(1.0 / q)]
}

/// x times the standard normal distribution function.
pub fn gelu(x: f64) -> f64 {
    if x < NORMAL_TAIL {
        let x = x.max(-1e4); // the tail's parts of minus infinity would be NaN
        let [density, series] = normal_tail(x);
        return -density * series * POWER;
    }
    if x > NORMAL_END { x } else { x * normal_cdf(x) }
}

/// The derivative of [`gelu`].
pub fn gelu_slope(x: f64) -> f64 {
    if x < NORMAL_TAIL {
        let x = x.max(-1e4);
        let [density, series] = normal_tail(x);
        return density * (x - series / x) * POWER;
    }
    if x > NORMAL_END { 1.0 } else { normal_cdf(x) + x * density(x) }
}
