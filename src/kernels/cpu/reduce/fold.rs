//! The folds of reductions: start, take a value, join two partial results, finish.
#![allow(unsafe_code)]

use std::marker::PhantomData;

use half::{bf16, f16};

use crate::dtype::{Bool, Element};
use crate::kernels::cpu::simd::number::{self, Number};
use crate::kernels::cpu::simd::wide::gather;

/// An element type as reductions read it: all integers and bool as int64, float16 and bfloat16 as
/// float32, so that folds are compiled for three types instead of nine.
pub trait Operand: Element {
    /// The type it is read as.
    type Value: Element;
    /// Whether that is the element type itself.
    const DIRECT: bool = Self::Value::DTYPE as u8 == Self::DTYPE as u8;

    /// `to[i]` = the element `at + i * step` positions after `from`.
    ///
    /// # Safety
    /// All these elements of type `Self` can be read.
    unsafe fn load(from: *const u8, at: isize, step: isize, to: &mut [Self::Value]);
}

macro_rules! operand {
    ($value:ty: $($rust:ty),*; $gather:expr) => {$(
        impl Operand for $rust {
            type Value = $value;
            unsafe fn load(from: *const u8, at: isize, step: isize, to: &mut [$value]) {
                // SAFETY: by the caller's promise.
                unsafe { $gather(from.cast::<$rust>().offset(at), step, to) }
            }
        }
    )*};
}
operand!(f32: f32; gather);
operand!(f64: f64; gather);
operand!(f32: f16, bf16; gather);
operand!(i64: i64; integers);
operand!(i64: i32, i8, u8, Bool; integers);

/// As [`gather`], for integers.
unsafe fn integers<T: Element>(from: *const T, step: isize, to: &mut [i64]) {
    for (i, to) in to.iter_mut().enumerate() {
        // SAFETY: by the caller's promise.
        *to = unsafe { *from.offset(i as isize * step) }.to_i64();
    }
}

/// As [`Operand::load`], for whether elements are nonzero; NaN is.
///
/// # Safety
/// As for [`Operand::load`].
pub unsafe fn truths<T: Element>(from: *const u8, at: isize, step: isize, to: &mut [Bool]) {
    let from = from.cast::<T>();
    for (i, to) in to.iter_mut().enumerate() {
        // SAFETY: by the caller's promise.
        *to = Bool::from(unsafe { *from.offset(at + i as isize * step) } != T::default());
    }
}

/// A reduction of values of type `V`.
pub trait Fold<V>: Send + Sync + 'static {
    /// A partial result.
    type Acc: Copy + Send + Sync;
    /// The result's type, from which it is rounded to the output's dtype.
    type Result: Total;
    /// The result of no values.
    const START: Self::Acc;
    /// Takes one more value, the `index`-th.
    fn take(acc: Self::Acc, value: V, index: i64) -> Self::Acc;
    /// Joins two partial results, whose values may be interleaved.
    fn join(a: Self::Acc, b: Self::Acc) -> Self::Acc;
    /// The result.
    fn finish(acc: Self::Acc) -> Self::Result;

    /// Takes contiguous values, the first of them the `index`-th.
    #[inline(always)]
    fn row(acc: Self::Acc, values: &[V], index: i64) -> Self::Acc
    where
        V: Copy,
    {
        let mut lanes = [Self::START; LANES];
        let (full, rest) = values.as_chunks::<LANES>();
        for (i, chunk) in full.iter().enumerate() {
            for l in 0..LANES {
                lanes[l] = Self::take(lanes[l], chunk[l], index + (i * LANES + l) as i64);
            }
        }
        // Stored once as a whole, lanes are as wide as the machine's vectors in the loop above.
        let mut lanes = std::hint::black_box(lanes);
        for (l, &value) in rest.iter().enumerate() {
            lanes[l] = Self::take(lanes[l], value, index + (full.len() * LANES + l) as i64);
        }
        let lanes: [_; 16] = Self::halved(&lanes);
        let lanes: [_; 8] = Self::halved(&lanes);
        let lanes: [_; 4] = Self::halved(&lanes);
        let [a, b]: [_; 2] = Self::halved(&lanes);
        Self::join(acc, Self::join(a, b))
    }

    /// The second half of twice `N` partial results joined to the first.
    #[inline(always)]
    fn halved<const N: usize>(lanes: &[Self::Acc]) -> [Self::Acc; N] {
        let mut made = [Self::START; N];
        for l in 0..N {
            made[l] = Self::join(lanes[l], lanes[l + N]);
        }
        made
    }
}

/// Independent partial results, so that a row is folded in vectors.
const LANES: usize = 32;

/// The type that results are computed in: float64 for floats, wrapping int64 for the others.
pub trait Total: Number {
    /// The empty sum.
    const ZERO: Self;
    /// The empty product.
    const ONE: Self;
    /// The value of an element.
    fn of(value: impl Element) -> Self;
    /// The nearest element; integers wrap.
    fn element<T: Element>(self) -> T;
}

macro_rules! total {
    ($rust:ty, $zero:expr, $one:expr, $to:ident, $from:ident) => {
        impl Total for $rust {
            const ZERO: Self = $zero;
            const ONE: Self = $one;
            #[inline(always)]
            fn of(value: impl Element) -> Self {
                value.$to()
            }
            #[inline(always)]
            fn element<T: Element>(self) -> T {
                T::$from(self)
            }
        }
    };
}
total!(f64, 0.0, 1.0, to_f64, from_f64);
total!(i64, 0, 1, to_i64, from_i64);

/// Writes the result over `count` values, or their mean, as an element of type `T`.
///
/// # Safety
/// The element `at` positions after `to` can be written.
pub unsafe fn store<T: Element, R: Total, const MEAN: bool>(
    to: *mut u8,
    at: isize,
    result: R,
    count: usize,
) {
    let mean = || T::from_f64(result.to_f64() / count as f64);
    let element = if MEAN { mean() } else { result.element() };
    // SAFETY: by the caller's promise.
    unsafe { to.cast::<T>().offset(at).write(element) }
}

/// The sum or the product, computed in `A`.
pub struct Joined<A, const PRODUCT: bool>(PhantomData<fn() -> A>);

impl<V: Element, A: Total, const PRODUCT: bool> Fold<V> for Joined<A, PRODUCT> {
    type Acc = A;
    type Result = A;
    const START: A = if PRODUCT { A::ONE } else { A::ZERO };
    #[inline(always)]
    fn take(acc: A, value: V, _: i64) -> A {
        <Self as Fold<V>>::join(acc, A::of(value))
    }
    #[inline(always)]
    fn join(a: A, b: A) -> A {
        if PRODUCT { a.times(b) } else { a.plus(b) }
    }
    #[inline(always)]
    fn finish(acc: A) -> A {
        acc
    }
}

/// Values with an order, in which NaN comes after all others in either direction.
pub trait Ordered: number::Value {
    /// No value is less.
    const LEAST: Self;
    /// No value is greater.
    const GREATEST: Self;
    /// The type that results are computed in.
    type Total: Total;
    /// Whether self is greater (`MAX`) or less than `other`.
    fn beats<const MAX: bool>(self, other: Self) -> bool;
    /// The same in fewer instructions, but a NaN also passes another.
    fn passes<const MAX: bool>(self, other: Self) -> bool;
}

macro_rules! ordered {
    ($($rust:ty, $total:ty: $least:expr, $greatest:expr, $x:ident => $nan:expr;)*) => {$(
        impl Ordered for $rust {
            const LEAST: Self = $least;
            const GREATEST: Self = $greatest;
            type Total = $total;
            #[inline(always)]
            fn beats<const MAX: bool>(self, other: Self) -> bool {
                let nan = |$x: $rust| $nan;
                self.passes::<MAX>(other) & !nan(other)
            }
            #[inline(always)]
            fn passes<const MAX: bool>(self, other: Self) -> bool {
                let nan = |$x: $rust| $nan;
                let ahead = if MAX { self > other } else { self < other };
                ahead | nan(self)
            }
        }
    )*};
}
ordered!(
    f32, f64: f32::NEG_INFINITY, f32::INFINITY, x => x.is_nan();
    f64, f64: f64::NEG_INFINITY, f64::INFINITY, x => x.is_nan();
    i64, i64: i64::MIN, i64::MAX, _x => false;
);

/// The greatest value (`MAX`) or the least; NaN if there is a NaN.
pub struct Extreme<const MAX: bool>;

impl<V: Ordered, const MAX: bool> Fold<V> for Extreme<MAX> {
    type Acc = V;
    type Result = V::Total;
    const START: V = if MAX { V::LEAST } else { V::GREATEST };
    #[inline(always)]
    fn take(acc: V, value: V, _: i64) -> V {
        if value.passes::<MAX>(acc) { value } else { acc }
    }
    #[inline(always)]
    fn join(a: V, b: V) -> V {
        if b.beats::<MAX>(a) { b } else { a }
    }
    #[inline(always)]
    fn finish(acc: V) -> V::Total {
        V::Total::of(acc)
    }
}

/// The index of the first of the greatest (`MAX`) or least values; of the first NaN if there is
/// one.
pub struct Place<const MAX: bool>;

impl<V: Ordered, const MAX: bool> Fold<V> for Place<MAX> {
    /// The value, and its index or -1 if there is none.
    type Acc = (V, i64);
    type Result = i64;
    const START: (V, i64) = (if MAX { V::LEAST } else { V::GREATEST }, -1);
    #[inline(always)]
    fn take(acc: (V, i64), value: V, index: i64) -> (V, i64) {
        if (acc.1 < 0) | value.beats::<MAX>(acc.0) { (value, index) } else { acc }
    }
    #[inline(always)]
    fn join(a: (V, i64), b: (V, i64)) -> (V, i64) {
        // Of equal values the one with the smaller index wins.
        let tie = !a.0.beats::<MAX>(b.0) & (b.1 < a.1);
        let wins = (b.1 >= 0) & ((a.1 < 0) | tie | b.0.beats::<MAX>(a.0));
        if wins { b } else { a }
    }
    #[inline(always)]
    fn finish(acc: (V, i64)) -> i64 {
        acc.1
    }
    #[inline(always)]
    fn row(acc: (V, i64), values: &[V], index: i64) -> (V, i64) {
        // First the value, vectorised; then its index, if it wins.
        let most = Extreme::<MAX>::row(<Extreme<MAX> as Fold<V>>::START, values, 0);
        if acc.1 >= 0 && !most.beats::<MAX>(acc.0) {
            return acc;
        }
        let place = values.iter().position(|value| !most.beats::<MAX>(*value));
        place.map_or(acc, |place| (most, index + place as i64))
    }
}

/// Whether all values (`ALL`), or any of them, are true.
pub struct Truth<const ALL: bool>;

impl<const ALL: bool> Fold<Bool> for Truth<ALL> {
    type Acc = bool;
    type Result = i64;
    const START: bool = ALL;
    #[inline(always)]
    fn take(acc: bool, value: Bool, _: i64) -> bool {
        Self::join(acc, value.get())
    }
    #[inline(always)]
    fn join(a: bool, b: bool) -> bool {
        if ALL { a & b } else { a | b }
    }
    #[inline(always)]
    fn finish(acc: bool) -> i64 {
        acc as i64
    }
}
