//! Moving data without computing: copy, cast, fill, ranges, concatenation.

use serde::{Deserialize, Serialize};

use super::elementwise::{self, element};
use super::{Cost, Family, Meta, Metas, Real, Scalar, exactly};
use crate::dispatch;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::shape::Shape;
use crate::view;

catalog!(
    Arange => "arange", Cast => "cast", Concat => "concat", Convert => "convert", Copy => "copy",
    Fill => "fill"
);

/// The same elements in new memory, row-major (ONNX Identity).
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Copy;

impl Family for Copy {
    fn name(&self) -> &'static str {
        "copy"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [x] = exactly(self.name(), inputs)?;
        Ok(smallvec::smallvec![Meta::new(x.dtype, x.shape.clone())])
    }

    fn any_output_strides(&self) -> bool {
        true
    }

    moves_only!();
}

/// The elements as another dtype (ONNX Cast). Floats round to the nearest; conversion to integers
/// truncates towards zero and clamps to the range (NaN gives 0); integers wrap; bool is whether an
/// element is nonzero.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Cast {
    /// The dtype of the result.
    pub dtype: DType,
}

impl Family for Cast {
    fn name(&self) -> &'static str {
        "cast"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [x] = exactly(self.name(), inputs)?;
        Ok(smallvec::smallvec![elementwise::result(self.dtype, x.shape.clone(), inputs)])
    }

    fn any_output_strides(&self) -> bool {
        true
    }

    moves_only!();
}

/// The elements as another dtype, which must represent them: floats round to floats, and stay
/// finite; everything else is exact. An element that the dtype cannot represent is an
/// [`Error::DType`], before anything is written.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Convert {
    /// The dtype of the result.
    pub dtype: DType,
}

impl Family for Convert {
    fn name(&self) -> &'static str {
        "convert"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        Cast { dtype: self.dtype }.infer(inputs)
    }

    fn any_output_strides(&self) -> bool {
        true
    }

    fn checked(&self) -> &'static [usize] {
        &[0]
    }

    moves_only!();
}

/// A tensor filled with one value. The dtype must represent it: floats round to floats, and stay
/// finite.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Fill {
    /// The value.
    pub value: Scalar,
    /// The shape.
    pub shape: Shape,
    /// The dtype.
    pub dtype: DType,
}

impl Fill {
    /// The value as an element.
    ///
    /// # Errors
    /// [`Error::Value`] and [`Error::DType`] where the dtype does not represent it.
    pub fn element<T: Element>(&self) -> Result<T> {
        let made = element::<T>(self.name(), self.value)?;
        let whole = |value: i64| made.to_f64() as i128 == value as i128;
        let exact = match self.value {
            Scalar::Int(value) => !self.dtype.is_float() || whole(value),
            Scalar::Real(_) => true,
        };
        let want = || format!("an integer that {} holds", self.dtype);
        crate::ensure!(exact, Error::value(self.name(), self.value.to_f64(), want()));
        Ok(made)
    }
}

impl Family for Fill {
    fn name(&self) -> &'static str {
        "fill"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [] = exactly(self.name(), inputs)?;
        self.shape.checked_numel(self.name())?;
        dispatch!(self.dtype, T => self.element::<T>().map(drop))?;
        Ok(smallvec::smallvec![Meta::new(self.dtype, self.shape.clone())])
    }

    fn any_output_strides(&self) -> bool {
        true
    }
}

/// `count` numbers: start, start + step, start + 2 step and so on, computed in float64 (or int64
/// for integers) and then rounded; the dtype must represent all of them: floats stay finite.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Arange {
    /// The first number.
    pub start: Scalar,
    /// The difference between consecutive numbers.
    pub step: Scalar,
    /// The number of elements.
    pub count: usize,
    /// The dtype.
    pub dtype: DType,
}

impl Arange {
    /// The first number and the step as integers.
    ///
    /// # Errors
    /// [`Error::Value`] and [`Error::DType`] where the dtype does not represent all numbers.
    pub fn integers(&self) -> Result<[i64; 2]> {
        let name = self.name();
        let [start, step] = [element(name, self.start)?, element(name, self.step)?];
        let steps = i64::try_from(self.count.saturating_sub(1)).ok();
        let last = steps.and_then(|n| n.checked_mul(step)).and_then(|way| way.checked_add(start));
        let got = || format!("{} numbers from {start} by {step}", self.count);
        let want = || format!("numbers that {} holds", self.dtype);
        let last = last.ok_or_else(|| Error::value(name, got(), want()))?;
        let ends = if self.count > 0 { &[start, last][..] } else { &[] };
        for &end in ends {
            dispatch!(self.dtype, T => element::<T>(name, Scalar::Int(end)).map(drop))?;
        }
        Ok([start, step])
    }

    /// Floats may round, but not to an infinity.
    fn check_ends(&self) -> Result<()> {
        let last = self.count.saturating_sub(1) as f64 * self.step.to_f64() + self.start.to_f64();
        let ends = [self.start, Scalar::Real(Real(last))];
        let used = &ends[..self.count.min(2)];
        used.iter().try_for_each(
            |&end| dispatch!(self.dtype, T => element::<T>(self.name(), end).map(drop)),
        )
    }
}

impl Family for Arange {
    fn name(&self) -> &'static str {
        "arange"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [] = exactly(self.name(), inputs)?;
        let number = self.dtype != DType::Bool;
        crate::ensure!(number, Error::dtype(self.name(), [self.dtype], "a dtype of numbers"));
        if self.dtype.is_int() {
            self.integers()?;
        } else {
            self.check_ends()?;
        }
        let shape = Shape::from([self.count]);
        shape.checked_numel(self.name())?;
        Ok(smallvec::smallvec![Meta::new(self.dtype, shape)])
    }

    fn any_output_strides(&self) -> bool {
        true
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        // Each number is computed and rounded separately.
        Cost::elementwise(io, 8)
    }
}

/// Concatenates one or more tensors of one dtype along `axis` (ONNX Concat). Their shapes agree
/// except for that axis.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Concat {
    /// The axis; negative ones count from the back.
    pub axis: i64,
}

impl Concat {
    fn shape(&self, inputs: &[&Meta], axis: usize) -> Result<Shape> {
        let first = &inputs[0].shape;
        let fits = |m: &&Meta| {
            m.shape.rank() == first.rank()
                && (0..first.rank()).all(|d| d == axis || m.shape[d] == first[d])
        };
        let shapes = inputs.iter().map(|m| &m.shape);
        let want = || format!("shapes that agree except on axis {axis}");
        crate::ensure!(inputs.iter().all(fits), Error::shape(self.name(), shapes, want()));
        let mut extents = inputs.iter().map(|m| m.shape[axis]);
        let sum = extents.try_fold(0usize, |sum, n| sum.checked_add(n));
        let want = || Error::shape(self.name(), [first], "fewer than 2^60 elements");
        let shape: Shape = (0..first.rank())
            .map(|d| if d == axis { sum } else { Some(first[d]) })
            .collect::<Option<Vec<_>>>()
            .ok_or_else(want)?
            .into_iter()
            .collect();
        shape.checked_numel(self.name())?;
        Ok(shape)
    }
}

impl Family for Concat {
    fn name(&self) -> &'static str {
        "concat"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let name = self.name();
        let none = || Error::arity(name, 0, "one or more");
        let first = *inputs.first().ok_or_else(none)?;
        elementwise::same_dtype(name, inputs)?;
        let shape = self.shape(inputs, first.shape.axis(name, self.axis)?)?;
        let ordered = inputs.iter().find(|m| m.numel() > 0 && !view::repeats(m));
        let strides = match ordered {
            Some(meta) => shape.dense_like(&meta.strides),
            None => shape.contiguous(),
        };
        Ok(smallvec::smallvec![Meta { dtype: first.dtype, shape, strides }])
    }

    fn any_output_strides(&self) -> bool {
        true
    }

    moves_only!();
}
