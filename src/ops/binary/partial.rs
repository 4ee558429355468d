//! Functions that are not always defined on integers: division and powers.

use super::BinaryFn;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::Scalar;

/// Whether `f` is undefined for some integer second operands.
pub fn is_partial(f: BinaryFn) -> bool {
    matches!(f, BinaryFn::Pow | BinaryFn::FloorDivide | BinaryFn::Remainder)
}

/// The error for integers without a result.
pub fn fault(f: BinaryFn, name: &'static str) -> Error {
    match f {
        BinaryFn::Pow => Error::value(name, "a negative exponent of an integer", "one from 0 on"),
        _ => Error::value(name, "an integer divided by zero", "divisors other than zero"),
    }
}

/// Rejects a scalar as second operand of tensors of this dtype.
///
/// # Errors
/// [`Error::Value`] where no integer has a result.
pub fn check_scalar(f: BinaryFn, name: &'static str, scalar: Scalar, dtype: DType) -> Result<()> {
    let lacks = match f {
        BinaryFn::Pow => scalar.to_f64() < 0.0,
        _ => is_partial(f) && scalar.to_f64() == 0.0,
    };
    crate::ensure!(!(lacks && dtype.is_int()), fault(f, name));
    Ok(())
}
