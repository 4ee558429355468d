//! Functions of two tensors, or of a tensor and a scalar, with NumPy's broadcasting.

mod partial;
mod table;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use partial::Divisor;
pub use table::{BinaryFn, Class};

use super::{Catalog, Cost, Family, Meta, Metas, Reach, Scalar, elementwise, exactly};
use crate::dtype::{Bool, DType};
use crate::error::{Error, Result};
use crate::kernels::cpu::loops::{Loop, Operand};
use crate::kernels::{Kernel, Width};

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

    fn reach(&self, _rank: usize) -> Reach {
        Reach::Element
    }

    fn any_output_strides(&self) -> bool {
        true
    }

    fn checked(&self) -> &'static [usize] {
        if partial::is_partial(self.f) { &[1] } else { &[] }
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        Cost::elementwise(io, cost(self.f))
    }

    fn cpu(&self, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
        let operands = [0, 1, 2].map(|i| Operand::widened(io[i]));
        let made = Arc::new(Loop::new(self.f.tile(io[0].dtype), operands, width));
        let divisor = Divisor { f: self.f, name: self.name(), input: 1, meta: io[1] };
        // If the second operand is broadcast to no element at all, it is not checked.
        Ok(if io[2].numel() == 0 { made } else { divisor.checked(made, width) })
    }
}

impl BinaryScalar {
    /// The scalar as an operand for a tensor of `dtype`.
    fn operand(&self, dtype: DType) -> Result<Operand> {
        let name = self.name();
        if matches!(self.f, BinaryFn::And | BinaryFn::Or | BinaryFn::Xor) {
            let truth = elementwise::truth(self.scalar).get() as i64;
            return operand(name, Scalar::Int(truth), dtype);
        }
        operand(name, self.scalar, dtype)
    }
}

/// A scalar as an operand of the type that tensors of `dtype` compute in.
fn operand(name: &'static str, scalar: Scalar, dtype: DType) -> Result<Operand> {
    use elementwise::element;
    Ok(match dtype {
        DType::Float16 => Operand::constant_of(element::<half::f16>(name, scalar)?.to_f32()),
        DType::BFloat16 => Operand::constant_of(element::<half::bf16>(name, scalar)?.to_f32()),
        DType::Float32 => Operand::constant_of(element::<f32>(name, scalar)?),
        DType::Float64 => Operand::constant_of(element::<f64>(name, scalar)?),
        DType::Int32 => Operand::constant_of(element::<i32>(name, scalar)?),
        DType::Int64 => Operand::constant_of(element::<i64>(name, scalar)?),
        DType::Int8 => Operand::constant_of(element::<i8>(name, scalar)?),
        DType::UInt8 => Operand::constant_of(element::<u8>(name, scalar)?),
        DType::Bool => Operand::constant_of(element::<Bool>(name, scalar)?),
    })
}

impl Family for BinaryScalar {
    fn name(&self) -> &'static str {
        self.f.scalar_name()
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [a] = exactly(self.name(), inputs)?;
        let dtype = result_dtype(self.f, self.name(), a.dtype)?;
        self.operand(a.dtype)?;
        if !self.reverse {
            partial::check_scalar(self.f, self.name(), self.scalar, a.dtype)?;
        }
        Ok(smallvec::smallvec![elementwise::result(dtype, a.shape.clone(), inputs)])
    }

    fn in_place(&self) -> &'static [(usize, usize)] {
        &[(0, 0)]
    }

    fn reach(&self, _rank: usize) -> Reach {
        Reach::Element
    }

    fn any_output_strides(&self) -> bool {
        true
    }

    fn checked(&self) -> &'static [usize] {
        if self.reverse && partial::is_partial(self.f) { &[0] } else { &[] }
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        Cost::elementwise(io, cost(self.f))
    }

    fn cpu(&self, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
        let [a, c] = [0, 1].map(|i| Operand::widened(io[i]));
        let scalar = self.operand(io[0].dtype)?;
        let operands = if self.reverse { [scalar, a, c] } else { [a, scalar, c] };
        let made = Arc::new(Loop::new(self.f.tile(io[0].dtype), operands, width));
        let divisor = Divisor { f: self.f, name: self.name(), input: 0, meta: io[0] };
        Ok(if self.reverse { divisor.checked(made, width) } else { made })
    }
}

#[cfg(test)]
mod tests;
