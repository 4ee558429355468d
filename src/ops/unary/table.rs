//! The functions of one variable: each is fully described by its row.

use serde::{Deserialize, Serialize};
use smallvec::{SmallVec, smallvec};

use super::rows::{Parameter, Saves, functions};
use crate::ops::Real;
use Saves::{Input, Nothing, Output};

/// Floating-point operations per element: an instruction or two, a polynomial, or several of them.
const CHEAP: u64 = 1;
const COSTLY: u64 = 16;
const COSTLIEST: u64 = 48;

/// Hands the rows to a macro: here and in each target, which makes kernels of them.
///
/// A row: variant, parameters, name and cost; its value for floats, and for integers if it maps
/// them to integers; what its gradient needs besides dy, and the gradient; value and gradient in
/// CUDA C. `T` is the type of the computation, `L` the instruction set.
macro_rules! unary_rows {
    ($expand:ident) => {
        $expand! {
            /// -x.
            Neg "neg" CHEAP { x => -x } { x => x.negative() } { Nothing; dy => -dy }
                ["negative(x)", "-dy"];
            /// |x|; the smallest integer wraps to itself.
            Abs "abs" CHEAP { x => x.abs() } { x => x.magnitude() }
                { Input; dy, x => if x > T::ZERO { dy } else if x < T::ZERO { -dy } else { x + T::ZERO } }
                ["magnitude(x)", "x > 0 ? dy : x < 0 ? -dy : x + T(0)"];
            /// -1, 0 or 1.
            Sign "sign" CHEAP { x => sign(x) } { x => x.sign() } { Nothing; _dy => T::ZERO }
                ["sign(x)", "T(0)"];
            /// e^x.
            Exp "exp" COSTLY { x => x.exp::<L>() } {} { Output; dy, y => dy * y }
                ["exp(x)", "dy * y"];
            /// e^x - 1, accurate near 0.
            Expm1 "expm1" COSTLY { x => x.expm1::<L>() } {} { Input; dy, x => dy * x.exp::<L>() }
                ["expm1(x)", "dy * exp(x)"];
            /// The natural logarithm.
            Log "log" COSTLY { x => x.log::<L>() } {} { Input; dy, x => dy / x }
                ["log(x)", "dy / x"];
            /// log(1 + x), accurate near 0.
            Log1p "log1p" COSTLY { x => x.log1p::<L>() } {} { Input; dy, x => dy / (T::ONE + x) }
                ["log1p(x)", "dy / (T(1) + x)"];
            /// The logarithm of base 2, exact for its powers.
            Log2 "log2" COSTLY { x => x.log2::<L>() } {}
                { Input; dy, x => dy * T::of(std::f64::consts::LOG2_E) / x }
                ["log2(x)", "dy * T(1.442695040888963407) / x"];
            /// The logarithm of base 10, exact for its powers.
            Log10 "log10" COSTLY { x => x.log10::<L>() } {}
                { Input; dy, x => dy * T::of(std::f64::consts::LOG10_E) / x }
                ["log10(x)", "dy * T(0.434294481903251828) / x"];
            /// 2^x.
            Exp2 "exp2" COSTLY { x => x.exp2::<L>() } {}
                { Output; dy, y => dy * (y * T::of(std::f64::consts::LN_2)) }
                ["exp2(x)", "dy * (y * T(0.693147180559945309))"];
            /// The square root.
            Sqrt "sqrt" CHEAP { x => x.sqrt() } {} { Output; dy, y => dy * T::of(0.5) / y }
                ["sqrt(x)", "dy * T(0.5) / y"];
            /// x x.
            Square "square" CHEAP { x => x * x } { x => x.times(x) } { Input; dy, x => twice(dy * x) }
                ["times(x, x)", "twice(dy * x)"];
            /// 1/x.
            Reciprocal "reciprocal" CHEAP { x => T::ONE / x } {} { Output; dy, y => -dy * y * y }
                ["T(1) / x", "-dy * y * y"];
            /// The least integer not below x.
            Ceil "ceil" CHEAP { x => x.ceil() } { x => x } { Nothing; _dy => T::ZERO }
                ["upward(x)", "T(0)"];
            /// The greatest integer not above x.
            Floor "floor" CHEAP { x => x.floor() } { x => x } { Nothing; _dy => T::ZERO }
                ["downward(x)", "T(0)"];
            /// The nearest integer, halves away from zero.
            Round "round" CHEAP { x => round(x) } { x => x } { Nothing; _dy => T::ZERO }
                ["half_away(x)", "T(0)"];
            /// The nearest integer, halves to even (ONNX Round).
            RoundE "rounde" CHEAP { x => x.round_ties_even() } { x => x } { Nothing; _dy => T::ZERO }
                ["half_even(x)", "T(0)"];
            /// The sine.
            Sin "sin" COSTLY { x => x.sin::<L>() } {} { Input; dy, x => dy * x.cos::<L>() }
                ["sin(x)", "dy * cos(x)"];
            /// The cosine.
            Cos "cos" COSTLY { x => x.cos::<L>() } {} { Input; dy, x => -dy * x.sin::<L>() }
                ["cos(x)", "-dy * sin(x)"];
            /// The tangent.
            Tan "tan" COSTLY { x => x.tan::<L>() } {} { Output; dy, y => dy * y.mad::<L>(y, T::ONE) }
                ["tan(x)", "dy * fma(y, y, T(1))"];
            /// The arc sine.
            Asin "asin" COSTLY { x => x.asin::<L>() } {}
                { Input; dy, x => dy / ((T::ONE - x) * (T::ONE + x)).sqrt() }
                ["asin(x)", "dy / sqrt((T(1) - x) * (T(1) + x))"];
            /// The arc cosine.
            Acos "acos" COSTLY { x => x.acos::<L>() } {}
                { Input; dy, x => -dy / ((T::ONE - x) * (T::ONE + x)).sqrt() }
                ["acos(x)", "-dy / sqrt((T(1) - x) * (T(1) + x))"];
            /// The arc tangent.
            Atan "atan" COSTLY { x => x.atan::<L>() } {} { Input; dy, x => atan_gradient::<T, L>(dy, x) }
                ["atan(x)", "atan_gradient(dy, x)"];
            /// The hyperbolic sine.
            Sinh "sinh" COSTLY { x => x.sinh::<L>() } {} { Input; dy, x => dy * x.cosh::<L>() }
                ["sinh(x)", "dy * cosh(x)"];
            /// The hyperbolic cosine.
            Cosh "cosh" COSTLY { x => x.cosh::<L>() } {} { Input; dy, x => dy * x.sinh::<L>() }
                ["cosh(x)", "dy * sinh(x)"];
            /// The hyperbolic tangent.
            Tanh "tanh" COSTLY { x => x.tanh::<L>() } {}
                { Output; dy, y => dy * ((T::ONE - y) * (T::ONE + y)) }
                ["tanh(x)", "dy * ((T(1) - y) * (T(1) + y))"];
            /// The inverse hyperbolic sine.
            Asinh "asinh" COSTLY { x => x.asinh::<L>() } {} { Input; dy, x => dy / asinh_slope::<T, L>(x) }
                ["asinh(x)", "dy / asinh_slope(x)"];
            /// The inverse hyperbolic cosine.
            Acosh "acosh" COSTLY { x => x.acosh::<L>() } {}
                { Input; dy, x => dy / ((x.abs() - T::ONE).sqrt() * (x.abs() + T::ONE).sqrt()) }
                ["acosh(x)", "dy / (sqrt(magnitude(x) - T(1)) * sqrt(magnitude(x) + T(1)))"];
            /// The inverse hyperbolic tangent.
            Atanh "atanh" COSTLY { x => x.atanh::<L>() } {}
                { Input; dy, x => dy / ((T::ONE - x) * (T::ONE + x)) }
                ["atanh(x)", "dy / ((T(1) - x) * (T(1) + x))"];
            /// 1 / (1 + e^-x).
            Sigmoid "sigmoid" COSTLY { x => x.sigmoid::<L>() } {}
                { Output; dy, y => dy * y * (T::ONE - y) } ["sigmoid(x)", "dy * y * (T(1) - y)"];
            /// max(x, 0).
            Relu "relu" CHEAP { x => if x <= T::ZERO { T::ZERO } else { x } } { x => x.larger(T::default()) }
                { Output; dy, y => if y <= T::ZERO { T::ZERO } else { dy } }
                ["relu(x)", "y <= 0 ? T(0) : dy"];
            /// log(1 + e^x).
            Softplus "softplus" COSTLY { x => x.softplus::<L>() } {}
                { Output; dy, y => -dy * (-y).expm1::<L>() } ["softplus(x)", "-dy * expm1(-y)"];
            /// x / (1 + |x|).
            Softsign "softsign" CHEAP { x => softsign(x) } {}
                { Input; dy, x => { let d = T::ONE + x.abs(); dy / d / d } }
                ["softsign(x)", "softsign_gradient(dy, x)"];
            /// The error function.
            Erf "erf" COSTLIEST { x => x.erf::<L>() } {}
                { Input; dy, x => dy * T::of(std::f64::consts::FRAC_2_SQRT_PI) * x.gauss::<L>() }
                ["erf(x)", "dy * T(TWO_OVER_SQRT_PI) * gauss(x)"];
            /// 1 minus the error function, accurate where it is small.
            Erfc "erfc" COSTLIEST { x => x.erfc::<L>() } {}
                { Input; dy, x => -dy * T::of(std::f64::consts::FRAC_2_SQRT_PI) * x.gauss::<L>() }
                ["erfc(x)", "-dy * T(TWO_OVER_SQRT_PI) * gauss(x)"];
            /// The inverse of the error function, from -1 to 1.
            Erfinv "erfinv" COSTLIEST { x => x.erfinv::<L>() } {}
                { Output; dy, y => dy * T::of(1.0 / std::f64::consts::FRAC_2_SQRT_PI) / y.gauss::<L>() }
                ["erfinv(x)", "dy * T(1 / TWO_OVER_SQRT_PI) / gauss(y)"];
            /// The standard normal distribution function.
            Ndtr "ndtr" COSTLIEST { x => x.ndtr::<L>() } {} { Input; dy, x => dy * x.density::<L>() }
                ["normcdf(x)", "dy * density(x)"];
            /// The logarithm of the standard normal distribution function.
            LogNdtr "log_ndtr" COSTLIEST { x => x.log_ndtr::<L>() } {}
                { Input; dy, x => dy * x.log_ndtr_slope::<L>() }
                ["log_ndtr(x)", "dy * log_ndtr_slope(x)"];
            /// The inverse of the standard normal distribution function, from 0 to 1.
            Ndtri "ndtri" COSTLIEST { x => x.ndtri::<L>() } {} { Output; dy, y => dy / y.density::<L>() }
                ["normcdfinv(x)", "dy / density(y)"];
            /// The logarithm of the gamma function's magnitude.
            Lgamma "lgamma" COSTLIEST { x => x.lgamma::<L>() } {} { Input; dy, x => dy * x.digamma::<L>() }
                ["lgamma(x)", "dy * digamma(x)"];
            /// The derivative of lgamma.
            Digamma "digamma" COSTLIEST { x => x.digamma::<L>() } {}
                { Input; dy, x => dy * x.polygamma(T::ONE) } ["digamma(x)", "dy * polygamma(1, x)"];
            /// Derivative n of digamma, from the first on; not vectorised.
            Polygamma { n: Real } "polygamma" COSTLIEST { x => x.polygamma(n) } {}
                { Input; dy, x => dy * x.polygamma(n + T::ONE) }
                ["polygamma(n, x)", "dy * polygamma(n + 1, x)"];
            /// x times the normal distribution function (the exact form of Hendrycks and Gimpel 2016).
            Gelu "gelu" COSTLIEST { x => x.gelu::<L>() } {}
                { Input; dy, x => dy * x.gelu_slope::<L>() }
                ["gelu(x)", "dy * gelu_slope(x)"];
            /// x sigmoid(x).
            Silu "silu" COSTLY { x => at_least(x, -FAR).silu::<L>() } {}
                { Input; dy, x => dy * within(x, FAR).silu_slope::<L>() }
                ["silu(x)", "dy * silu_slope(x)"];
            /// x, or a x below 0 (ONNX LeakyRelu).
            LeakyRelu { a: Real } "leakyrelu" CHEAP
                { x => if x <= T::ZERO { scaled(a, x) } else { x } } {}
                { if a.0 >= 0.0 { Output } else { Input };
                  dy, s => if s <= T::ZERO { dy * a } else { dy } }
                ["x <= 0 ? scaled(T(a), x) : x", "s <= 0 ? dy * T(a) : dy"];
            /// x, or alpha (e^x - 1) below 0 (ONNX Elu).
            Elu { alpha: Real } "elu" COSTLY
                { x => if x <= T::ZERO { alpha * x.expm1::<L>() } else { x } } {}
                { Input; dy, x => if x <= T::ZERO { dy * (alpha * x.exp::<L>()) } else { dy } }
                ["x <= 0 ? T(alpha) * expm1(x) : x", "x <= 0 ? dy * (T(alpha) * exp(x)) : dy"];
            /// gamma x, or gamma alpha (e^x - 1) below 0 (ONNX Selu).
            Selu { alpha: Real, gamma: Real } "selu" COSTLY
                { x => if x <= T::ZERO { gamma * alpha * x.expm1::<L>() } else { gamma * x } } {}
                { Input; dy, x => selu_gradient::<T, L>(dy, x, alpha, gamma) }
                ["x <= 0 ? T(gamma) * T(alpha) * expm1(x) : T(gamma) * x",
                 "dy * (x <= 0 ? T(gamma) * T(alpha) * exp(x) : T(gamma))"];
            /// alpha x + gamma, clamped between 0 and 1 (ONNX HardSigmoid, whose beta is gamma here).
            HardSigmoid { alpha: Real, gamma: Real } "hardsigmoid" CHEAP
                { x => clip(x * alpha + gamma, Some(T::ZERO), Some(T::ONE)) } {}
                { Output; dy, y => if (y > T::ZERO) & (y < T::ONE) { dy * alpha } else { T::ZERO } }
                ["clip(x * T(alpha) + T(gamma), 0, 1)", "y > 0 && y < 1 ? dy * T(alpha) : T(0)"];
            /// x clamped to min and max, each of which may be absent.
            Clip { min: Option<Real>, max: Option<Real> } "clip" CHEAP
                { x => clip(x, min, max) } { x => clip_integer(x, min, max) }
                { Input; dy, x => if is_inside(x, min, max) { dy } else { T::ZERO } }
                ["clip(x, min, max)", "x < T(min) || x > T(max) || x != x ? T(0) : dy"];
        }
    };
}
pub(crate) use unary_rows;

unary_rows!(functions);
