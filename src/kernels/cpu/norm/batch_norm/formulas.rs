//! The computation on each element: terms of sums, and results.

use std::marker::PhantomData;

use crate::kernels::cpu::matmul::tile::Sum;
use crate::kernels::cpu::simd::wide::Wide;

/// A term of a sum.
pub trait Term {
    /// Whether it reads dy.
    const READS_DY: bool;
    /// Whether it needs the coefficients of [`Relu`].
    const IS_RECTIFIED: bool = false;
    /// The term of an element, given its deviation and the coefficients of [`Relu`].
    fn of<A: Wide + Sum>(x: A, dy: A, d: f64, relu: [A; 3]) -> f64;
}

/// The deviation.
pub struct Deviation;

impl Term for Deviation {
    const READS_DY: bool = false;
    #[inline(always)]
    fn of<A: Wide + Sum>(_: A, _: A, d: f64, _: [A; 3]) -> f64 {
        d
    }
}

/// dy.
pub struct Slope;

impl Term for Slope {
    const READS_DY: bool = true;
    #[inline(always)]
    fn of<A: Wide + Sum>(_: A, dy: A, _: f64, _: [A; 3]) -> f64 {
        dy.to_f64()
    }
}

impl Term for Relu<Slope> {
    const READS_DY: bool = true;
    const IS_RECTIFIED: bool = true;
    #[inline(always)]
    fn of<A: Wide + Sum>(x: A, dy: A, _: f64, relu: [A; 3]) -> f64 {
        rectified(x, dy, relu).to_f64()
    }
}

/// The number of coefficients of a channel.
pub const COEFFICIENTS: usize = 6;

/// The computation of an element of the result.
pub trait Formula {
    /// Whether it reads x, and whether it reads dy.
    const READS: [bool; 2];
    /// The element, given the channel's coefficients.
    fn of<A: Wide>(x: A, dy: A, coefficients: [A; COEFFICIENTS]) -> A;
}

/// y = (x - mean) * scale + shift.
pub struct Normalize;

impl Formula for Normalize {
    const READS: [bool; 2] = [true, false];
    #[inline(always)]
    fn of<A: Wide>(x: A, _: A, [mean, scale, shift, ..]: [A; COEFFICIENTS]) -> A {
        (x - mean) * scale + shift
    }
}

/// dx = dy * scale + (x - mean) * slope + shift.
pub struct Gradient;

impl Formula for Gradient {
    const READS: [bool; 2] = [true, true];
    #[inline(always)]
    fn of<A: Wide>(x: A, dy: A, [mean, scale, shift, slope, ..]: [A; COEFFICIENTS]) -> A {
        dy * scale + ((x - mean) * slope + shift)
    }
}

/// dx = dy * scale.
pub struct Scale;

impl Formula for Scale {
    const READS: [bool; 2] = [false, true];
    #[inline(always)]
    fn of<A: Wide>(_: A, dy: A, [_, scale, ..]: [A; COEFFICIENTS]) -> A {
        dy * scale
    }
}

/// The formula followed by max(y, 0), or its gradient.
pub struct Relu<F>(PhantomData<F>);

impl Formula for Relu<Normalize> {
    const READS: [bool; 2] = Normalize::READS;
    #[inline(always)]
    fn of<A: Wide>(x: A, dy: A, coefficients: [A; COEFFICIENTS]) -> A {
        positive(Normalize::of(x, dy, coefficients))
    }
}

impl Formula for Relu<Plus<Normalize>> {
    const READS: [bool; 2] = [true, true];
    #[inline(always)]
    fn of<A: Wide>(x: A, other: A, coefficients: [A; COEFFICIENTS]) -> A {
        positive(Plus::<Normalize>::of(x, other, coefficients))
    }
}

/// The formula plus the other tensor.
pub struct Plus<F>(PhantomData<F>);

impl Formula for Plus<Normalize> {
    const READS: [bool; 2] = [true, true];
    #[inline(always)]
    fn of<A: Wide>(x: A, other: A, coefficients: [A; COEFFICIENTS]) -> A {
        Normalize::of(x, other, coefficients) + other
    }
}

/// max(y, 0); NaN passes through.
#[inline(always)]
fn positive<A: Wide>(y: A) -> A {
    if y <= A::ZERO { A::ZERO } else { y }
}

/// The last two coefficients are scale and shift of [`Normalize`].
impl Formula for Relu<Gradient> {
    const READS: [bool; 2] = Gradient::READS;
    #[inline(always)]
    fn of<A: Wide>(x: A, dy: A, coefficients: [A; COEFFICIENTS]) -> A {
        let [mean, _, _, _, scale, shift] = coefficients;
        Gradient::of(x, rectified(x, dy, [mean, scale, shift]), coefficients)
    }
}

/// dy where max(y, 0) passes it on, y being [`Normalize`] of x, computed as in the forward pass.
#[inline(always)]
fn rectified<A: Wide>(x: A, dy: A, [mean, scale, shift]: [A; 3]) -> A {
    if (x - mean) * scale + shift <= A::ZERO { A::ZERO } else { dy }
}
