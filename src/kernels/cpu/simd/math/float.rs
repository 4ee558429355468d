//! The two types that floating-point loops compute in, with a common set of functions.

use std::ops::{Add, Div, Mul, Neg, Sub};

use super::double;
use super::gamma::{digamma_f64, polygamma_f64};
use super::quantile::{erfinv_f64, ndtri_f64};
use crate::kernels::cpu::simd::isa::Level;
use crate::kernels::cpu::simd::number::Value;

/// float32 (with this module's functions) or float64 (mostly with those of the standard library).
pub trait Float:
    Value
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// The least positive normal number.
    const LEAST: Self;
    /// The nearest value.
    fn of(value: f64) -> Self;
    /// `self * b + c`.
    fn mad<L: Level>(self, b: Self, c: Self) -> Self;
    /// Whether it is not a number.
    fn is_nan(self) -> bool;
    /// The magnitude.
    fn abs(self) -> Self;
    /// Self, or 0 if it is denormal: arithmetic on denormal numbers is many times slower.
    #[inline(always)]
    fn flushed(self) -> Self {
        if self.abs() < Self::LEAST { Self::ZERO } else { self }
    }
    /// The magnitude of self with the sign of `sign`.
    fn copysign(self, sign: Self) -> Self;
    /// The square root.
    fn sqrt(self) -> Self;
    /// The least integer not below self.
    fn ceil(self) -> Self;
    /// The greatest integer not above self.
    fn floor(self) -> Self;
    /// The integer part.
    fn trunc(self) -> Self;
    /// The nearest integer; the even one of two.
    fn round_ties_even(self) -> Self;
    /// C's fmod: the remainder with the sign of self.
    fn fmod(self, by: Self) -> Self;
    /// Self to the power of `y`.
    fn pow<L: Level>(self, y: Self) -> Self;
    /// x times the standard normal distribution function.
    fn gelu<L: Level>(self) -> Self;
    /// The derivative of [`Float::gelu`].
    fn gelu_slope<L: Level>(self) -> Self;
    /// x / (1 + e^-x), for x from -1e4 on.
    fn silu<L: Level>(self) -> Self;
    /// The derivative of [`Float::silu`], for x within ±1e4.
    fn silu_slope<L: Level>(self) -> Self;
    /// e^(-x^2).
    fn gauss<L: Level>(self) -> Self;
    /// 1 / (1 + e^-x).
    fn sigmoid<L: Level>(self) -> Self;
    /// log(1 + e^x).
    fn softplus<L: Level>(self) -> Self;
    /// e^x.
    fn exp<L: Level>(self) -> Self;
    /// e^x for x up to 88, where denormal results may be 0.
    fn exp_flushed<L: Level>(self) -> Self;
    /// e^x - 1.
    fn expm1<L: Level>(self) -> Self;
    /// 2^x.
    fn exp2<L: Level>(self) -> Self;
    /// The natural logarithm.
    fn log<L: Level>(self) -> Self;
    /// log(1 + x).
    fn log1p<L: Level>(self) -> Self;
    /// The logarithm of base 2.
    fn log2<L: Level>(self) -> Self;
    /// The logarithm of base 10.
    fn log10<L: Level>(self) -> Self;
    /// The error function.
    fn erf<L: Level>(self) -> Self;
    /// 1 minus the error function.
    fn erfc<L: Level>(self) -> Self;
    /// The inverse of the error function.
    fn erfinv<L: Level>(self) -> Self;
    /// The standard normal distribution function.
    fn ndtr<L: Level>(self) -> Self;
    /// Its logarithm.
    fn log_ndtr<L: Level>(self) -> Self;
    /// The derivative of [`Float::log_ndtr`].
    fn log_ndtr_slope<L: Level>(self) -> Self;
    /// The inverse of [`Float::ndtr`].
    fn ndtri<L: Level>(self) -> Self;
    /// The standard normal density.
    fn density<L: Level>(self) -> Self;
    /// log|Gamma(x)|.
    fn lgamma<L: Level>(self) -> Self;
    /// The derivative of [`Float::lgamma`].
    fn digamma<L: Level>(self) -> Self;
    /// Derivative `n`, a whole number from 1 on, of [`Float::digamma`].
    fn polygamma(self, n: Self) -> Self;
    /// The sine.
    fn sin<L: Level>(self) -> Self;
    /// The cosine.
    fn cos<L: Level>(self) -> Self;
    /// The tangent.
    fn tan<L: Level>(self) -> Self;
    /// The arc sine.
    fn asin<L: Level>(self) -> Self;
    /// The arc cosine.
    fn acos<L: Level>(self) -> Self;
    /// The arc tangent.
    fn atan<L: Level>(self) -> Self;
    /// The hyperbolic sine.
    fn sinh<L: Level>(self) -> Self;
    /// The hyperbolic cosine.
    fn cosh<L: Level>(self) -> Self;
    /// The hyperbolic tangent.
    fn tanh<L: Level>(self) -> Self;
    /// The inverse hyperbolic sine.
    fn asinh<L: Level>(self) -> Self;
    /// The inverse hyperbolic cosine.
    fn acosh<L: Level>(self) -> Self;
    /// The inverse hyperbolic tangent.
    fn atanh<L: Level>(self) -> Self;
}

/// What both types take from the standard library: exact functions that are single instructions.
macro_rules! exact {
    ($type:ty) => {
        const ZERO: Self = 0.0;
        const ONE: Self = 1.0;
        const LEAST: Self = <$type>::MIN_POSITIVE;
        #[inline(always)]
        fn of(value: f64) -> Self {
            value as $type
        }
        #[inline(always)]
        fn mad<L: Level>(self, b: Self, c: Self) -> Self {
            if L::FMA { self.mul_add(b, c) } else { self * b + c }
        }
        #[inline(always)]
        fn is_nan(self) -> bool {
            <$type>::is_nan(self)
        }
        exact!(@forward $type, abs ceil floor sqrt trunc round_ties_even);
        #[inline(always)]
        fn copysign(self, sign: Self) -> Self {
            <$type>::copysign(self, sign)
        }
    };
    (@forward $type:ty, $($name:ident)*) => {$(
        #[inline(always)]
        fn $name(self) -> Self {
            <$type>::$name(self)
        }
    )*};
}

/// Functions of one argument: `name => path of a function`.
macro_rules! functions {
    ($($name:ident => $function:expr),* $(,)?) => {$(
        #[inline(always)]
        fn $name<L: Level>(self) -> Self {
            $function(self)
        }
    )*};
}

impl Float for f32 {
    exact!(f32);
    #[inline(always)]
    fn fmod(self, by: Self) -> Self {
        let (x, y) = (self as f64, by as f64);
        let quotient = (x / y).trunc();
        // Of these, none was rounded up to a whole number, and the product is exact.
        if quotient.abs() < (1 << 29) as f64 {
            let rest = if quotient == 0.0 { x } else { x - quotient * y };
            return (rest as f32).copysign(self);
        }
        self % by
    }
    #[inline(always)]
    fn pow<L: Level>(self, y: Self) -> Self {
        super::pow_f32::<L>(self, y)
    }
    #[inline(always)]
    fn polygamma(self, n: Self) -> Self {
        polygamma_f64(n as i32, self as f64) as f32
    }
    functions! {
        gelu => super::gelu_f32::<L>, gelu_slope => super::gelu_slope_f32::<L>,
        silu => super::silu_f32::<L>, silu_slope => super::silu_slope_f32::<L>,
        gauss => super::gauss_f32::<L>, sigmoid => super::sigmoid_f32::<L>,
        softplus => super::softplus_f32::<L>, exp => super::exp_f32::<L>,
        exp_flushed => super::exp_flushed_f32::<L>,
        expm1 => super::expm1_f32::<L>, exp2 => super::exp2_f32::<L>, log => super::log_f32::<L>,
        log1p => super::log1p_f32::<L>, log2 => super::log2_f32::<L>,
        log10 => super::log10_f32::<L>, erf => super::erf_f32::<L>,
        sin => super::sin_f32::<L>, cos => super::cos_f32::<L>, tan => super::tan_f32::<L>,
        asin => super::asin_f32::<L>, acos => super::acos_f32::<L>, atan => super::atan_f32::<L>,
        sinh => super::sinh_f32::<L>, cosh => super::cosh_f32::<L>, tanh => super::tanh_f32::<L>,
        asinh => super::asinh_f32::<L>, acosh => super::acosh_f32::<L>,
        atanh => super::atanh_f32::<L>,
        erfc => super::erfc_f32::<L>, erfinv => super::erfinv_f32::<L>,
        ndtr => super::ndtr_f32::<L>, log_ndtr => super::log_ndtr_f32::<L>,
        log_ndtr_slope => super::log_ndtr_slope_f32::<L>, ndtri => super::ndtri_f32::<L>,
        density => super::density_f32::<L>, lgamma => super::lgamma_f32::<L>,
        digamma => super::digamma_f32::<L>,
    }
}

impl Float for f64 {
    exact!(f64);
    #[inline(always)]
    fn fmod(self, by: Self) -> Self {
        self % by
    }
    #[inline(always)]
    fn pow<L: Level>(self, y: Self) -> Self {
        self.powf(y)
    }
    #[inline(always)]
    fn polygamma(self, n: Self) -> Self {
        polygamma_f64(n as i32, self)
    }
    functions! {
        gelu => double::gelu, gelu_slope => double::gelu_slope,
        silu => double::silu, silu_slope => double::silu_slope, gauss => double::gauss,
        sigmoid => |x: f64| {
            let e = (-x.abs()).exp();
            (if x < 0.0 { e } else { 1.0 }) / (1.0 + e)
        },
        softplus => |x: f64| (if x < 0.0 { 0.0 } else { x }) + (-x.abs()).exp().ln_1p(),
        exp => f64::exp, exp_flushed => f64::exp, expm1 => f64::exp_m1, exp2 => f64::exp2,
        log => f64::ln, log1p => f64::ln_1p, log2 => f64::log2, log10 => f64::log10, erf => libm::erf,
        sin => f64::sin, cos => f64::cos, tan => f64::tan,
        asin => f64::asin, acos => f64::acos, atan => f64::atan,
        sinh => f64::sinh, cosh => f64::cosh, tanh => f64::tanh,
        asinh => double::asinh, acosh => double::acosh, atanh => double::atanh,
        erfc => libm::erfc, erfinv => erfinv_f64,
        ndtr => double::ndtr, log_ndtr => double::log_ndtr,
        log_ndtr_slope => double::log_ndtr_slope, ndtri => ndtri_f64, density => double::density,
        lgamma => libm::lgamma, digamma => digamma_f64,
    }
}
