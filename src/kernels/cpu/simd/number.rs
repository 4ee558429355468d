//! Arithmetic and logic of the types that elementwise loops compute in, as NumPy defines them.

use std::ops::{BitAnd, BitOr, BitXor};

use crate::dtype::{Bool, Element};
use crate::kernels::cpu::simd::isa::{Every, Least, Level, Narrow, Reach};
use crate::kernels::cpu::simd::math::Float;

/// A type that has a truth value and an order.
pub trait Value: Element {
    /// The instruction sets that loops over it are compiled for: except for float32, of which
    /// models are made, they are bound by memory.
    type Reach: Reach;
    /// Those of loops that add numbers up or compare them, which are bound by arithmetic sooner,
    /// but no faster with the widest vectors.
    type Folds: Reach;

    /// Whether it is not zero (NaN is not).
    fn truth(self) -> bool;
    /// Whether it is less than `other`.
    fn less(self, other: Self) -> bool;
    /// Whether it is less than or equal to `other`.
    fn at_most(self, other: Self) -> bool;
    /// Whether both are equal.
    fn same(self, other: Self) -> bool;
}

macro_rules! values {
    ($($type:ty: $reach:ident, $folds:ident;)*) => {$(
        impl Value for $type {
            type Reach = $reach;
            type Folds = $folds;
            #[inline(always)]
            fn truth(self) -> bool { self != 0 as $type }
            #[inline(always)]
            fn less(self, other: Self) -> bool { self < other }
            #[inline(always)]
            fn at_most(self, other: Self) -> bool { self <= other }
            #[inline(always)]
            fn same(self, other: Self) -> bool { self == other }
        }
    )*};
}
values!(
    f32: Every, Narrow;
    f64: Least, Narrow;
    i32: Least, Least;
    i64: Least, Least;
    i8: Least, Least;
    u8: Least, Least;
);

impl Value for Bool {
    type Reach = Least;
    type Folds = Least;

    #[inline(always)]
    fn truth(self) -> bool {
        self.0 != 0
    }
    #[inline(always)]
    fn less(self, other: Self) -> bool {
        !self.truth() & other.truth()
    }
    #[inline(always)]
    fn at_most(self, other: Self) -> bool {
        !self.truth() | other.truth()
    }
    #[inline(always)]
    fn same(self, other: Self) -> bool {
        self.truth() == other.truth()
    }
}

/// A type with arithmetic. Integers wrap.
pub trait Number: Value {
    /// The sum.
    fn plus(self, b: Self) -> Self;
    /// The difference.
    fn minus(self, b: Self) -> Self;
    /// The product.
    fn times(self, b: Self) -> Self;
    /// The quotient; integers round towards 0 and are never divided by this method.
    fn over(self, b: Self) -> Self;
    /// Self to the power of `b`; 0 where an integer `b` is negative.
    fn power<L: Level>(self, b: Self) -> Self;
    /// The larger one, or NaN if either is.
    fn larger(self, b: Self) -> Self;
    /// The smaller one, or NaN if either is.
    fn smaller(self, b: Self) -> Self;
    /// The quotient rounded towards minus infinity; 0 where an integer `b` is 0.
    fn floor_over(self, b: Self) -> Self;
    /// The remainder of that division, with the sign of `b`; 0 where an integer `b` is 0.
    fn modulo(self, b: Self) -> Self;
}

/// What all numbers share, apart from addition, which wraps for integers.
macro_rules! order {
    () => {
        #[inline(always)]
        fn larger(self, b: Self) -> Self {
            // The second comparison detects a NaN in `self`.
            #[allow(clippy::eq_op)]
            if (self > b) | (self != self) { self } else { b }
        }
        #[inline(always)]
        fn smaller(self, b: Self) -> Self {
            #[allow(clippy::eq_op)]
            if (self < b) | (self != self) { self } else { b }
        }
    };
}

macro_rules! floats {
    ($($type:ty),*) => {$(
        impl Number for $type {
            order!();
            #[inline(always)]
            fn plus(self, b: Self) -> Self { self + b }
            #[inline(always)]
            fn minus(self, b: Self) -> Self { self - b }
            #[inline(always)]
            fn times(self, b: Self) -> Self { self * b }
            #[inline(always)]
            fn over(self, b: Self) -> Self { self / b }
            #[inline(always)]
            fn power<L: Level>(self, b: Self) -> Self { Float::pow::<L>(self, b) }
            #[inline(always)]
            fn floor_over(self, b: Self) -> Self {
                let rest = self.fmod(b);
                let turned = (rest != 0.0) & ((rest < 0.0) != (b < 0.0));
                // The dividend is a multiple of b, so the quotient only needs rounding, as in NumPy.
                let near = (self - rest) / b - if turned { 1.0 } else { 0.0 };
                let below = near.floor();
                let whole = if near - below > 0.5 { below + 1.0 } else { below };
                let quotient = self / b;
                let signed = if whole == 0.0 { whole.copysign(quotient) } else { whole };
                if b == 0.0 { quotient } else { signed }
            }
            #[inline(always)]
            fn modulo(self, b: Self) -> Self {
                let rest = self.fmod(b);
                let turned = (rest != 0.0) & ((rest < 0.0) != (b < 0.0));
                if rest == 0.0 { rest.copysign(b) } else if turned { rest + b } else { rest }
            }
        }
    )*};
}
floats!(f32, f64);

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl Number for $type {
            order!();
            #[inline(always)]
            fn plus(self, b: Self) -> Self { self.wrapping_add(b) }
            #[inline(always)]
            fn minus(self, b: Self) -> Self { self.wrapping_sub(b) }
            #[inline(always)]
            fn times(self, b: Self) -> Self { self.wrapping_mul(b) }
            #[inline(always)]
            fn over(self, b: Self) -> Self { if b == 0 { 0 } else { self.wrapping_div(b) } }
            #[inline(always)]
            fn power<L: Level>(self, b: Self) -> Self {
                let (mut product, mut square, mut left) = (1, self, b);
                while left > 0 {
                    product = if left & 1 == 1 { square.times(product) } else { product };
                    square = square.times(square);
                    left >>= 1;
                }
                if Self::lacks_power(b) { 0 } else { product }
            }
            #[inline(always)]
            #[allow(unused_comparisons)]
            fn floor_over(self, b: Self) -> Self {
                if b == 0 {
                    return 0;
                }
                let turned = (self.wrapping_rem(b) != 0) & ((self < 0) != (b < 0));
                self.wrapping_div(b).wrapping_sub(turned as $type)
            }
            #[inline(always)]
            #[allow(unused_comparisons)]
            fn modulo(self, b: Self) -> Self {
                if b == 0 {
                    return 0;
                }
                let rest = self.wrapping_rem(b);
                if (rest != 0) & ((rest < 0) != (b < 0)) { rest.wrapping_add(b) } else { rest }
            }
        }
    )*};
}
integers!(i32, i64, i8, u8);

/// An integer type.
pub trait Integer:
    Number + BitAnd<Output = Self> + BitOr<Output = Self> + BitXor<Output = Self>
{
    /// The bits moved up by `b`: none are left where that is not from 0 to their number.
    fn shifted_left(self, b: Self) -> Self;
    /// The bits moved down by `b`, preceded by the sign: that alone is left where `b` is not from 0
    /// to their number.
    fn shifted_right(self, b: Self) -> Self;
    /// 0 - self, wrapping.
    fn negative(self) -> Self;
    /// The magnitude; that of the smallest value wraps to itself.
    fn magnitude(self) -> Self;
    /// -1, 0 or 1.
    fn sign(self) -> Self;
    /// Whether powers with exponent `b` are undefined.
    fn lacks_power(b: Self) -> bool;
    /// Whether quotients with divisor `b` are undefined.
    fn lacks_quotient(b: Self) -> bool;
}

macro_rules! integer_signs {
    ($($type:ty),*) => {$(
        impl Integer for $type {
            #[inline(always)]
            #[allow(unused_comparisons)]
            fn shifted_left(self, b: Self) -> Self {
                if b < 0 || b as u64 >= Self::BITS as u64 { 0 } else { self.wrapping_shl(b as u32) }
            }
            #[inline(always)]
            #[allow(unused_comparisons)]
            fn shifted_right(self, b: Self) -> Self {
                let most = Self::BITS - 1;
                if b >= 0 && b as u64 <= most as u64 {
                    self.wrapping_shr(b as u32)
                } else if self < 0 {
                    self.wrapping_shr(most)
                } else {
                    0
                }
            }
            #[inline(always)]
            fn negative(self) -> Self { self.wrapping_neg() }
            #[inline(always)]
            #[allow(unused_comparisons)]
            fn magnitude(self) -> Self { if self < 0 { self.wrapping_neg() } else { self } }
            #[inline(always)]
            #[allow(unused_comparisons)]
            fn sign(self) -> Self {
                ((self > 0) as $type).wrapping_sub((self < 0) as $type)
            }
            #[inline(always)]
            #[allow(unused_comparisons)]
            fn lacks_power(b: Self) -> bool { b < 0 }
            #[inline(always)]
            fn lacks_quotient(b: Self) -> bool { b == 0 }
        }
    )*};
}
integer_signs!(i32, i64, i8, u8);
