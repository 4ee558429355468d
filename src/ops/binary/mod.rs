//! Functions of two tensors, or of a tensor and a scalar, with NumPy's broadcasting.

mod partial;
mod power;
mod table;

use serde::{Deserialize, Serialize};

pub use partial::{fault, is_partial};
pub use power::EasyPower;
pub(crate) use table::binary_rows;
pub use table::{BinaryFn, Class};

use super::{Catalog, Cost, Family, Meta, Metas, Scalar, elementwise, exactly};
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};

/// c = f(a, b) for two tensors of one dtype, broadcast. Comparisons and logic return bool. Dividing
/// an integer by zero, or raising it to a negative power, is an [`Error::Value`] at run time.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Binary {
    /// The function.
    pub f: BinaryFn,
}

/// c = f(a, scalar), or f(scalar, a) if `reverse`. The scalar takes the tensor's dtype, which must
/// represent it; logical functions only check whether it is zero.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct BinaryScalar {
    /// The function.
    pub f: BinaryFn,
    /// The other operand.
    pub scalar: Scalar,
    /// Whether the scalar is the first operand.
    #[serde(default)]
    pub reverse: bool,
}

impl Catalog for Binary {
    fn names() -> Vec<&'static str> {
        BinaryFn::NAMES.to_vec()
    }
}

impl Catalog for BinaryScalar {
    fn names() -> Vec<&'static str> {
        BinaryFn::WITH_SCALAR.to_vec()
    }
}

/// The dtype of the result, if the function supports the operands' dtype.
fn result_dtype(f: BinaryFn, name: &'static str, dtype: DType) -> Result<DType> {
    let want = match f.class() {
        Class::Logical => return Ok(DType::Bool),
        Class::Floating if !dtype.is_float() => "float tensors: cast first",
        Class::Arithmetic if dtype == DType::Bool && f.on_booleans().is_none() => {
            "tensors of numbers: cast first"
        }
        Class::Whole if dtype.is_float() || dtype == DType::Bool && f.on_booleans().is_none() => {
            "integer tensors"
        }
        _ => return Ok(dtype),
    };
    Err(Error::dtype(name, [dtype], want))
}

/// Floating-point operations per element.
fn cost(f: BinaryFn) -> u64 {
    match f {
        BinaryFn::Pow => 32,
        BinaryFn::FloorDivide | BinaryFn::Remainder => 8,
        _ => 1,
    }
}

impl Family for Binary {
    fn name(&self) -> &'static str {
        self.f.name()
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [a, _] = exactly(self.name(), inputs)?;
        elementwise::same_dtype(self.name(), inputs)?;
        let dtype = result_dtype(self.f, self.name(), a.dtype)?;
        let shape = elementwise::common_shape(self.name(), inputs)?;
        Ok(smallvec::smallvec![elementwise::result(dtype, shape, inputs)])
    }

    fn in_place(&self) -> &'static [(usize, usize)] {
        &[(0, 0), (1, 0)]
    }

    element_by_element!();

    fn checked(&self) -> &'static [usize] {
        if is_partial(self.f) { &[1] } else { &[] }
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        Cost::elementwise(io, cost(self.f))
    }
}

impl BinaryScalar {
    /// The scalar as an element of the tensor's type.
    ///
    /// # Errors
    /// Those of [`elementwise::element`].
    pub fn element<T: Element>(&self) -> Result<T> {
        let is_logic = matches!(self.f, BinaryFn::And | BinaryFn::Or | BinaryFn::Xor);
        let truth = || Scalar::Int(elementwise::truth(self.scalar).get() as i64);
        elementwise::element(self.name(), if is_logic { truth() } else { self.scalar })
    }
}

impl Family for BinaryScalar {
    fn name(&self) -> &'static str {
        self.f.scalar_name()
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [a] = exactly(self.name(), inputs)?;
        let dtype = result_dtype(self.f, self.name(), a.dtype)?;
        crate::dispatch!(a.dtype, T => self.element::<T>().map(drop))?;
        if !self.reverse {
            partial::check_scalar(self.f, self.name(), self.scalar, a.dtype)?;
        }
        Ok(smallvec::smallvec![elementwise::result(dtype, a.shape.clone(), inputs)])
    }

    fn in_place(&self) -> &'static [(usize, usize)] {
        &[(0, 0)]
    }

    element_by_element!();

    fn checked(&self) -> &'static [usize] {
        if self.reverse && is_partial(self.f) { &[0] } else { &[] }
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        let is_easy = self.easy_power(io[0].dtype).is_some();
        Cost::elementwise(io, if is_easy { 1 } else { cost(self.f) })
    }
}
