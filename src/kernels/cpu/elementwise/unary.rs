//! Functions of one tensor, and their gradients.

use std::sync::Arc;

use crate::dispatch;
use crate::dtype::{Bool, DType};
use crate::error::Result;
use crate::kernels::cpu::isa::{Isa, Level};
use crate::kernels::cpu::loops::{Loop, Map1, Map2, Operand, Tile, map1, map2};
use crate::kernels::cpu::math::Float;
use crate::kernels::cpu::number::{Integer, Value};
use crate::kernels::{Kernel, Width};
use crate::ops::unary::{Unary, UnaryFn, UnaryGrad, unary_rows};
use crate::ops::{Meta, Real};

/// Prepares x -> y.
///
/// # Errors
/// [`crate::Error::DType`] for a dtype that the function does not take.
pub fn unary(op: &Unary, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let operands = [Operand::widened(io[0]), Operand::widened(io[1])];
    let tile = tile(&op.f, io[0].dtype).ok_or_else(|| op.refusal(io[0].dtype))?;
    Ok(Arc::new(Loop::new(tile, operands, width)))
}

/// Prepares dx from dy and what the function saves.
///
/// # Errors
/// [`crate::Error::DType`] for a function without a gradient.
pub fn unary_grad(op: &UnaryGrad, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let (operand, isa) = (|i: usize| Operand::widened(io[i]), Isa::active());
    let tile = match io[0].dtype {
        DType::Float64 => gradient::<f64>(&op.f, isa),
        _ => gradient::<f32>(&op.f, isa),
    };
    Ok(match tile.ok_or_else(|| op.refusal(io[0].dtype))? {
        Gradient::One(tile) => Arc::new(Loop::new(tile, [operand(0), operand(1)], width)),
        Gradient::Two(tile) => {
            Arc::new(Loop::new(tile, [operand(0), operand(1), operand(2)], width))
        }
    })
}

/// The tile for elements of `dtype`.
fn tile(f: &UnaryFn, dtype: DType) -> Option<Box<dyn Tile<2>>> {
    let isa = Isa::active();
    if *f == UnaryFn::Not {
        return Some(not(isa, dtype));
    }
    match dtype {
        DType::Float64 => floats::<f64>(f, isa),
        float if float.is_float() => floats::<f32>(f, isa),
        int => dispatch!(int int, T => integers::<T>(f, isa), else => None),
    }
}

fn not(isa: Isa, dtype: DType) -> Box<dyn Tile<2>> {
    struct Not;
    impl<T: Value> Map1<T, Bool> for Not {
        type Reach = T::Reach;
        #[inline(always)]
        fn at<L: Level>(&self, a: T) -> Bool {
            (!a.truth()).into()
        }
    }
    match dtype {
        DType::Float16 | DType::BFloat16 | DType::Float32 => map1::<f32, Bool>(isa, Not),
        DType::Float64 => map1::<f64, Bool>(isa, Not),
        DType::Int32 => map1::<i32, Bool>(isa, Not),
        DType::Int64 => map1::<i64, Bool>(isa, Not),
        DType::Int8 => map1::<i8, Bool>(isa, Not),
        DType::UInt8 => map1::<u8, Bool>(isa, Not),
        DType::Bool => map1::<Bool, Bool>(isa, Not),
    }
}

/// A gradient's tile: a function of (dy), or of (dy, saved tensor).
enum Gradient {
    /// Nothing is saved.
    One(Box<dyn Tile<2>>),
    /// The argument or the value is saved.
    Two(Box<dyn Tile<3>>),
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

/// Turns the rows of the table into tiles.
macro_rules! tiles {
    (@floats $isa:ident, [$($p:ident: $type:ty),*], { $x:ident => $value:expr }) => {{
        struct Row { $($p: $type),* }
        impl<T: Float + Value> Map1<T, T> for Row {
            type Reach = T::Reach;
            #[inline(always)]
            fn at<L: Level>(&self, $x: T) -> T {
                $(let $p = Parameter::<T>::value(self.$p);)*
                $value
            }
        }
        map1::<T, T>($isa, Row { $($p: *$p),* })
    }};
    (@integers $isa:ident, [$($p:ident: $type:ty),*], {}) => { None };
    (@integers $isa:ident, [$($p:ident: $type:ty),*], { $x:ident => $value:expr }) => {{
        struct Row { $($p: $type),* }
        impl<T: Integer> Map1<T, T> for Row {
            type Reach = T::Reach;
            #[inline(always)]
            fn at<L: Level>(&self, $x: T) -> T {
                $(let $p = self.$p;)*
                $value
            }
        }
        Some(map1::<T, T>($isa, Row { $($p: *$p),* }))
    }};
    (@gradient $isa:ident, [$($p:ident: $type:ty),*], { $saves:expr; $dy:ident => $value:expr }) => {{
        struct Row { $($p: $type),* }
        impl<T: Float + Value> Map1<T, T> for Row {
            type Reach = T::Reach;
            #[inline(always)]
            fn at<L: Level>(&self, $dy: T) -> T {
                $(let $p = Parameter::<T>::value(self.$p);)*
                $value
            }
        }
        Gradient::One(map1::<T, T>($isa, Row { $($p: *$p),* }))
    }};
    (@gradient $isa:ident, [$($p:ident: $type:ty),*],
        { $saves:expr; $dy:ident, $s:ident => $value:expr }) => {{
        struct Row { $($p: $type),* }
        impl<T: Float + Value> Map2<T, T, T> for Row {
            type Reach = T::Reach;
            #[inline(always)]
            fn at<L: Level>(&self, $dy: T, $s: T) -> T {
                $(let $p = Parameter::<T>::value(self.$p);)*
                $value
            }
        }
        Gradient::Two(map2::<T, T, T>($isa, Row { $($p: *$p),* }))
    }};
    ($(
        $(#[$doc:meta])*
        $variant:ident $({ $($p:ident: $type:ty),* })? $name:literal $cost:ident
            $floats:tt $integers:tt $gradient:tt;
    )*) => {
        /// The tile of a function's values on floats; `None` for `not`.
        #[allow(unused_variables)]
        fn floats<T: Float + Value>(f: &UnaryFn, isa: Isa) -> Option<Box<dyn Tile<2>>> {
            Some(match f {
                $(UnaryFn::$variant $({ $($p),* })? =>
                    tiles!(@floats isa, [$($($p: $type),*)?], $floats),)*
                UnaryFn::Not => return None,
            })
        }

        /// The tile of a function's values on integers; `None` where they are not integers.
        #[allow(unused_variables)]
        fn integers<T: Integer>(f: &UnaryFn, isa: Isa) -> Option<Box<dyn Tile<2>>> {
            match f {
                $(UnaryFn::$variant $({ $($p),* })? =>
                    tiles!(@integers isa, [$($($p: $type),*)?], $integers),)*
                UnaryFn::Not => None,
            }
        }

        /// The tile of a function's gradient; `None` for `not`.
        #[allow(unused_variables)]
        fn gradient<T: Float + Value>(f: &UnaryFn, isa: Isa) -> Option<Gradient> {
            Some(match f {
                $(UnaryFn::$variant $({ $($p),* })? =>
                    tiles!(@gradient isa, [$($($p: $type),*)?], $gradient),)*
                UnaryFn::Not => return None,
            })
        }
    };
}

unary_rows!(tiles);

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

/// The slope of scale (e^x - 1), computed from its value if that was saved, in the negative range.
#[inline(always)]
fn elu_slope<T: Float, L: Level>(saved: T, scale: T, sign: T) -> T {
    if sign > T::ZERO { saved + scale } else { scale * saved.exp::<L>() }
}

#[inline(always)]
fn selu_gradient<T: Float, L: Level>(dy: T, saved: T, alpha: T, gamma: T) -> T {
    let both = if alpha < gamma { alpha } else { gamma };
    let below = dy * elu_slope::<T, L>(saved, gamma * alpha, both);
    let above = dy * gamma;
    if saved <= T::ZERO { below } else { above }
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
