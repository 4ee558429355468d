//! Functions of one tensor, and their gradients.

use std::sync::Arc;

use super::looped;
use crate::dtype::{Bool, DType};
use crate::error::Result;
use crate::kernels::cpu::simd::isa::Level;
use crate::kernels::cpu::simd::math::Float;
use crate::kernels::cpu::simd::number::{Integer, Value};
use crate::kernels::cpu::strided::loops::{Map, map};
use crate::kernels::{Kernel, Width};
use crate::ops::unary::{Unary, UnaryFn, UnaryGrad, unary_rows};
use crate::ops::{Meta, Real};

/// Prepares x -> y.
///
/// # Errors
/// [`crate::Error::DType`] for a dtype that the function does not take.
pub fn unary(op: &Unary, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let made = match io[0].dtype {
        dtype if op.f == UnaryFn::Not => crate::dispatch!(wide dtype,
            T => Some(looped(map::<(T,), Bool, 2, _>(Not), io, width)),
            else => Some(looped(map::<(Bool,), Bool, 2, _>(Not), io, width))),
        DType::Float64 => floats::<f64>(&op.f, io, width),
        float if float.is_float() => floats::<f32>(&op.f, io, width),
        int => crate::dispatch!(int int, T => integers::<T>(&op.f, io, width), else => None),
    };
    made.ok_or_else(|| op.refusal(io[0].dtype))
}

/// Prepares dx from dy and what the function saves.
///
/// # Errors
/// [`crate::Error::DType`] for a function without a gradient.
pub fn unary_grad(op: &UnaryGrad, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let made = match io[0].dtype {
        DType::Float64 => gradient::<f64>(&op.f, io, width),
        _ => gradient::<f32>(&op.f, io, width),
    };
    made.ok_or_else(|| op.refusal(io[0].dtype))
}

#[derive(Clone, Copy)]
struct Not;

impl<T: Value> Map<(T,), Bool> for Not {
    type Reach = T::Reach;
    #[inline(always)]
    fn at<L: Level>(&self, (a,): (T,)) -> Bool {
        (!a.truth()).into()
    }
}

/// A parameter of a function, converted to the type of the computation.
trait Parameter<T> {
    /// The type in the row's expressions.
    type Value;
    /// The nearest value.
    fn value(self) -> Self::Value;
}

impl<T: Float> Parameter<T> for Real {
    type Value = T;
    #[inline(always)]
    fn value(self) -> T {
        T::of(self.0)
    }
}

impl<T: Float> Parameter<T> for Option<Real> {
    type Value = Option<T>;
    #[inline(always)]
    fn value(self) -> Option<T> {
        self.map(|real| T::of(real.0))
    }
}

#[inline(always)]
fn converted<T, P: Parameter<T>>(parameter: P) -> P::Value {
    parameter.value()
}

/// Called in the same way, for integers.
#[allow(clippy::extra_unused_type_parameters)]
#[inline(always)]
fn unchanged<T, P>(parameter: P) -> P {
    parameter
}

/// `T` for each variable of a row.
macro_rules! same {
    ($x:ident) => {
        T
    };
}

/// Turns the rows of the table into kernels.
macro_rules! kernels {
    // A row's expression, if it has one, on values of a bound with converted parameters.
    (@row $io:ident $width:ident [$($bound:tt)*] $value:ident $parameters:tt {}) => { None };
    (@row $io:ident $width:ident [$($bound:tt)*] $value:ident [$($p:ident: $type:ty),*]
        { $($x:ident),+ => $result:expr }) => {{
        #[derive(Clone, Copy)]
        struct Row { $($p: $type),* }
        impl<T: $($bound)*> Map<($(same!($x),)+), T> for Row {
            type Reach = T::Reach;
            #[inline(always)]
            fn at<L: Level>(&self, ($($x,)+): ($(same!($x),)+)) -> T {
                $(let $p = $value::<T, _>(self.$p);)*
                $result
            }
        }
        Some(looped(map::<($(same!($x),)+), T, _, _>(Row { $($p: *$p),* }), $io, $width))
    }};
    (@row $io:ident $width:ident $bound:tt $value:ident $parameters:tt { $saves:expr; $($row:tt)* }) => {
        kernels!(@row $io $width $bound $value $parameters { $($row)* })
    };
    ($(
        $(#[$doc:meta])*
        $variant:ident $({ $($p:ident: $type:ty),* })? $name:literal $cost:ident
            $floats:tt $integers:tt $gradient:tt $c:tt;
    )*) => {
        /// A function's values on floats; `None` for `not`.
        #[allow(unused_variables)]
        fn floats<T: Float + Value>(f: &UnaryFn, io: &[&Meta], width: Width) -> Option<Arc<dyn Kernel>> {
            match f {
                $(UnaryFn::$variant $({ $($p),* })? => kernels!(@row io width [Float + Value]
                    converted [$($($p: $type),*)?] $floats),)*
                UnaryFn::Not => None,
            }
        }

        /// A function's values on integers; `None` where they are not integers.
        #[allow(unused_variables)]
        fn integers<T: Integer>(f: &UnaryFn, io: &[&Meta], width: Width) -> Option<Arc<dyn Kernel>> {
            match f {
                $(UnaryFn::$variant $({ $($p),* })? => kernels!(@row io width [Integer]
                    unchanged [$($($p: $type),*)?] $integers),)*
                UnaryFn::Not => None,
            }
        }

        /// A function's gradient; `None` for `not`.
        #[allow(unused_variables)]
        fn gradient<T: Float + Value>(f: &UnaryFn, io: &[&Meta], width: Width) -> Option<Arc<dyn Kernel>> {
            match f {
                $(UnaryFn::$variant $({ $($p),* })? => kernels!(@row io width [Float + Value]
                    converted [$($($p: $type),*)?] $gradient),)*
                UnaryFn::Not => None,
            }
        }
    };
}

unary_rows!(kernels);

/// Beyond this gelu and silu are x or 0, and infinities must not be multiplied by zeros.
const FAR: f64 = 1e4;

#[inline(always)]
fn at_least<T: Float>(x: T, low: f64) -> T {
    if x < T::of(low) { T::of(low) } else { x }
}

#[inline(always)]
fn within<T: Float>(x: T, far: f64) -> T {
    let x = at_least(x, -far);
    if x > T::of(far) { T::of(far) } else { x }
}

#[inline(always)]
fn sign<T: Float>(x: T) -> T {
    // NaN, or positive 0 for either zero.
    let middle = x + T::ZERO;
    let above = if x > T::ZERO { T::ONE } else { middle };
    if x < T::ZERO { -T::ONE } else { above }
}

#[inline(always)]
fn round<T: Float>(x: T) -> T {
    let whole = x.trunc();
    let away = if (x - whole).abs() >= T::of(0.5) { T::ONE } else { T::ZERO };
    whole + away.copysign(x)
}

#[inline(always)]
fn softsign<T: Float>(x: T) -> T {
    let a = x.abs();
    let y = x / (T::ONE + a);
    if a == T::of(f64::INFINITY) { T::ONE.copysign(x) } else { y }
}

/// sqrt(x^2 + 1), without overflow.
#[inline(always)]
fn asinh_slope<T: Float, L: Level>(x: T) -> T {
    let a = x.abs();
    let root = x.mad::<L>(x, T::ONE).sqrt();
    if a > T::of(1e9) { a } else { root }
}

/// dy / (x^2 + 1), without overflow.
#[inline(always)]
fn atan_gradient<T: Float, L: Level>(dy: T, x: T) -> T {
    let near = dy / x.mad::<L>(x, T::ONE);
    if x.abs() > T::of(1e9) { dy / x / x } else { near }
}

/// 2 x, without doubling a factor of x, which could overflow first.
#[inline(always)]
fn twice<T: Float>(x: T) -> T {
    x + x
}

/// a x, but 0 and not NaN for 0 times infinity.
#[inline(always)]
fn scaled<T: Float>(a: T, x: T) -> T {
    let product = a * x;
    if (a == T::ZERO) & !x.is_nan() { T::ZERO } else { product }
}

#[inline(always)]
fn selu_gradient<T: Float, L: Level>(dy: T, x: T, alpha: T, gamma: T) -> T {
    dy * if x <= T::ZERO { gamma * alpha * x.exp::<L>() } else { gamma }
}

#[inline(always)]
fn clip<T: Float>(x: T, min: Option<T>, max: Option<T>) -> T {
    let (min, max) = bounds(min, max);
    let x = if x < min { min } else { x };
    if x > max { max } else { x }
}

#[inline(always)]
fn is_inside<T: Float>(x: T, min: Option<T>, max: Option<T>) -> bool {
    let (min, max) = bounds(min, max);
    (x >= min) & (x <= max)
}

#[inline(always)]
fn bounds<T: Float>(min: Option<T>, max: Option<T>) -> (T, T) {
    (min.unwrap_or(T::of(f64::NEG_INFINITY)), max.unwrap_or(T::of(f64::INFINITY)))
}

/// The bounds are integers; those outside the range of the type are clamped to it.
#[inline(always)]
fn clip_integer<T: Integer>(x: T, min: Option<Real>, max: Option<Real>) -> T {
    let x = min.map_or(x, |min| x.larger(T::from_f64(min.0)));
    max.map_or(x, |max| x.smaller(T::from_f64(max.0)))
}
