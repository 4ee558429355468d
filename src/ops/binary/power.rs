//! Powers with exponents that take a product, a quotient or a root instead of a logarithm.

use super::{BinaryFn, BinaryScalar};
use crate::dtype::DType;

/// What such a power is: of floats, the first two also of integers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EasyPower {
    /// x ** 1.
    Itself,
    /// x ** 2.
    Square,
    /// x ** 3.
    Cube,
    /// x ** 0.5, as the square root: NaN for -inf, and -0 for -0 (as the operators of NumPy and
    /// PyTorch).
    Root,
    /// x ** -1.
    Reciprocal,
    /// x ** -0.5, as 1 over that root.
    InverseRoot,
}

impl BinaryScalar {
    /// What it is for tensors of this dtype, if it is such a power.
    pub fn easy_power(&self, dtype: DType) -> Option<EasyPower> {
        if self.f != BinaryFn::Pow || self.reverse || dtype == DType::Bool {
            return None;
        }
        let exponent = self.scalar.to_f64();
        let found = match exponent {
            1.0 => EasyPower::Itself,
            2.0 => EasyPower::Square,
            3.0 => EasyPower::Cube,
            0.5 => EasyPower::Root,
            -1.0 => EasyPower::Reciprocal,
            -0.5 => EasyPower::InverseRoot,
            _ => return None,
        };
        let is_whole = matches!(found, EasyPower::Itself | EasyPower::Square);
        (dtype.is_float() || is_whole).then_some(found)
    }
}
