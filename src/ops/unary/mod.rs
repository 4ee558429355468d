//! Elementwise functions of one tensor, and their gradients.

mod rows;
mod table;

use serde::{Deserialize, Serialize};

pub use rows::Saves;
pub use table::UnaryFn;
pub(crate) use table::unary_rows;

use super::{Catalog, Cost, Family, Meta, Metas, Real, elementwise, exactly};
use crate::dtype::DType;
use crate::error::{Error, Result};

/// y = f(x). Floats; integers if the function maps integers to integers; `not` takes any dtype and
/// returns bool.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Unary {
    /// The function.
    pub f: UnaryFn,
}

/// dx from dy and what [`UnaryFn::saves`] names, all of one shape and one float dtype.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct UnaryGrad {
    /// The function whose gradient it is.
    pub f: UnaryFn,
}

impl Catalog for Unary {
    fn names() -> Vec<&'static str> {
        UnaryFn::NAMES.to_vec()
    }
}

impl Catalog for UnaryGrad {
    fn names() -> Vec<&'static str> {
        UnaryFn::GRADIENTS.to_vec()
    }
}

impl Unary {
    /// The error for a dtype that the function does not take.
    pub fn refusal(&self, dtype: DType) -> Error {
        let integers = if self.f.takes_integers() { " or integer" } else { "" };
        Error::dtype(self.name(), [dtype], format!("a float{integers} tensor: cast first"))
    }

    fn check(&self, dtype: DType) -> Result<()> {
        let takes = match dtype {
            DType::Bool => self.f == UnaryFn::Not,
            _ => dtype.is_float() || self.f.takes_integers(),
        };
        crate::ensure!(takes, self.refusal(dtype));
        self.f.check_order(self.name())?;
        self.check_bounds(dtype)
    }

    /// Checks that bounds are numbers, and integers for an integer dtype.
    fn check_bounds(&self, dtype: DType) -> Result<()> {
        let UnaryFn::Clip { min, max } = &self.f else { return Ok(()) };
        let whole = [min, max].into_iter().flatten().all(|bound| bound.0.trunc() == bound.0);
        let want = "whole numbers as bounds of integers, or a float tensor: cast first";
        crate::ensure!(dtype.is_float() || whole, Error::dtype("clip", [dtype], want));
        let nan = [min, max].into_iter().flatten().any(|bound| bound.0.is_nan());
        crate::ensure!(!nan, Error::value("clip", "nan", "bounds that are numbers"));
        Ok(())
    }
}

impl Family for Unary {
    fn name(&self) -> &'static str {
        self.f.name()
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [x] = exactly(self.name(), inputs)?;
        self.check(x.dtype)?;
        let dtype = if self.f == UnaryFn::Not { DType::Bool } else { x.dtype };
        Ok(smallvec::smallvec![elementwise::result(dtype, x.shape.clone(), inputs)])
    }

    fn in_place(&self) -> &'static [(usize, usize)] {
        &[(0, 0)]
    }

    element_by_element!();

    fn cost(&self, io: &[&Meta]) -> Cost {
        Cost::elementwise(io, self.f.cost())
    }
}

impl UnaryFn {
    /// The largest order of `polygamma`: further ones would take thousands of terms.
    const MOST_ORDERS: f64 = 100.0;

    /// Checks that the order of a derivative is one.
    fn check_order(&self, name: &'static str) -> Result<()> {
        let UnaryFn::Polygamma { n: Real(n) } = self else { return Ok(()) };
        let is_order = (1.0..=Self::MOST_ORDERS).contains(n) && n.trunc() == *n;
        crate::ensure!(is_order, Error::value(name, n, "an order n from 1 to 100, a whole number"));
        Ok(())
    }
}

impl UnaryGrad {
    /// The error for a function that has no gradient.
    pub fn refusal(&self, dtype: DType) -> Error {
        Error::dtype(self.name(), [dtype], "a function that has a gradient")
    }

    fn check(&self, inputs: &[&Meta]) -> Result<()> {
        let (name, first) = (self.name(), inputs[0]);
        self.f.check_order(name)?;
        elementwise::same_dtype(name, inputs)?;
        let floats = first.dtype.is_float();
        crate::ensure!(floats, Error::dtype(name, [first.dtype], "float tensors"));
        let has = self.f != UnaryFn::Not;
        crate::ensure!(has, Error::value("unary_grad", "not", "a function that has a gradient"));
        let same = inputs.iter().all(|m| m.shape == first.shape);
        let shapes = inputs.iter().map(|m| &m.shape);
        crate::ensure!(same, Error::shape(name, shapes, "tensors of one shape"));
        Ok(())
    }
}

impl Family for UnaryGrad {
    fn name(&self) -> &'static str {
        self.f.gradient_name()
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let name = self.name();
        if self.f.saves() == Saves::Nothing {
            exactly::<1>(name, inputs)?;
        } else {
            exactly::<2>(name, inputs)?;
        }
        self.check(inputs)?;
        let Meta { dtype, shape, .. } = inputs[0];
        Ok(smallvec::smallvec![elementwise::result(*dtype, shape.clone(), inputs)])
    }

    fn in_place(&self) -> &'static [(usize, usize)] {
        match self.f.saves() {
            Saves::Nothing => &[(0, 0)],
            _ => &[(0, 0), (1, 0)],
        }
    }

    element_by_element!();

    fn cost(&self, io: &[&Meta]) -> Cost {
        Cost::elementwise(io, self.f.cost())
    }
}
