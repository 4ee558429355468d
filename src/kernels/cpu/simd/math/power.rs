//! Powers.

use super::exp::exp_64;
use super::log::log_64;
use crate::kernels::cpu::simd::isa::Level;

/// x to the power of y, with the special cases of C99.
#[inline(always)]
pub fn pow_f32<L: Level>(x: f32, y: f32) -> f32 {
    let (a, b) = ((x as f64).abs(), y as f64);
    let magnitude = exp_64::<L>(b * log_64::<L>(a)) as f32;
    let half = b * 0.5;
    let whole = b.floor() == b;
    // An infinite y is even.
    let odd = whole & (half.floor() != half);
    let negative = x.is_sign_negative() & odd;
    let signed = if negative { -magnitude } else { magnitude };
    let undefined = (x < 0.0) & (x != f32::NEG_INFINITY) & !whole;
    let signed = if undefined { f32::NAN } else { signed };
    let one = (y == 0.0) | (x == 1.0) | ((x == -1.0) & y.is_infinite());
    if one { 1.0 } else { signed }
}
