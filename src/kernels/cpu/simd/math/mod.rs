//! Elementary functions for vector loops: no branches and no calls, so that loops over them
//! vectorise. Each is within 2 units in the last place of float32 over its whole domain (`gelu`
//! within 6), and follows C99 for NaN, infinities, signed zeros and denormals. The coefficients are
//! minimax fits.
//!
//! The common functions (`exp`, `log`, `tanh`, `erf`, `sigmoid`, `gelu`) compute in float32; the
//! others in float64 with polynomials that are just long enough for float32.

mod double;
mod erf;
mod exp;
mod float;
mod gamma;
mod log;
mod power;
mod quantile;
mod trigonometry;

pub use erf::{
    density_f32, erf_f32, erfc_f32, gelu_f32, gelu_slope_f32, log_ndtr_f32, log_ndtr_slope_f32,
    ndtr_f32,
};
pub use exp::{
    cosh_f32, exp_f32, exp_flushed_f32, exp2_f32, expm1_f32, gauss_f32, sigmoid_f32, silu_f32,
    silu_slope_f32, sinh_f32, softplus_f32, tanh_f32,
};
pub use float::Float;
pub use gamma::{digamma_f32, lgamma_f32};
pub use log::{acosh_f32, asinh_f32, atanh_f32, log_f32, log1p_f32, log2_f32, log10_f32};
pub use power::pow_f32;
pub use quantile::{erfinv_f32, ndtri_f32};
pub use trigonometry::{
    acos_f32, asin_f32, atan_f32, cos_f32, sin_cos_of_turns_f32, sin_f32, tan_f32,
};

use crate::kernels::cpu::simd::isa::Level;

/// `a * b + c`, rounded once where the instruction set has a fused multiply-add.
#[inline(always)]
pub fn mad<L: Level>(a: f32, b: f32, c: f32) -> f32 {
    if L::FMA { a.mul_add(b, c) } else { a * b + c }
}

/// [`mad`] in float64.
#[inline(always)]
pub fn mad64<L: Level>(a: f64, b: f64, c: f64) -> f64 {
    if L::FMA { a.mul_add(b, c) } else { a * b + c }
}

/// The polynomial with coefficients `c`, the constant one first.
#[inline(always)]
fn poly<L: Level, const N: usize>(x: f32, c: [f32; N]) -> f32 {
    let mut sum = c[N - 1];
    let mut i = N - 1;
    while i > 0 {
        i -= 1;
        sum = mad::<L>(sum, x, c[i]);
    }
    sum
}

/// [`poly`] in float64.
#[inline(always)]
fn poly64<L: Level, const N: usize>(x: f64, c: [f64; N]) -> f64 {
    let mut sum = c[N - 1];
    let mut i = N - 1;
    while i > 0 {
        i -= 1;
        sum = mad64::<L>(sum, x, c[i]);
    }
    sum
}

#[cfg(test)]
mod tests;
