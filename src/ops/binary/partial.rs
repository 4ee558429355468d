//! Functions that are not always defined on integers: division and powers.

use std::sync::Arc;

use super::BinaryFn;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernels::cpu::number::Integer;
use crate::kernels::cpu::scan::Scan;
use crate::kernels::{Io, Kernel, Width, checked};
use crate::ops::{Meta, Scalar};

/// Whether `f` is undefined for some integer second operands.
pub fn is_partial(f: BinaryFn) -> bool {
    matches!(f, BinaryFn::Pow | BinaryFn::FloorDivide | BinaryFn::Remainder)
}

/// The error for integers without a result.
fn fault(f: BinaryFn, name: &'static str) -> Error {
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

/// A function, and the input that is its second operand.
pub struct Divisor<'a> {
    pub f: BinaryFn,
    pub name: &'static str,
    pub input: usize,
    pub meta: &'a Meta,
}

impl Divisor<'_> {
    /// `kernel`, which then runs only if results are defined for every second operand.
    pub fn checked(self, kernel: Arc<dyn Kernel>, width: Width) -> Arc<dyn Kernel> {
        crate::dispatch!(int self.meta.dtype, T => match self.f {
            BinaryFn::Pow => self.refusing(T::lacks_power, kernel, width),
            f if is_partial(f) => self.refusing(T::lacks_quotient, kernel, width),
            _ => kernel,
        }, else => kernel)
    }

    fn refusing<T: Integer>(
        self,
        lacks: impl Fn(T) -> bool + Send + Sync + 'static,
        kernel: Arc<dyn Kernel>,
        width: Width,
    ) -> Arc<dyn Kernel> {
        let (f, name, scan) = (self.f, self.name, Scan::new(self.input, self.meta, width));
        let check = move |io: &Io| {
            let worst = scan.largest(io, |b| lacks(b) as u32)?;
            crate::ensure!(worst == 0, fault(f, name));
            Ok(())
        };
        checked(check, kernel)
    }
}
