//! Reductions: sum, mean, max, min, prod, argmax, argmin, any, all.

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::{Catalog, Cost, Family, Meta, Metas, exactly};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::Shape;

/// The function of a reduction, with NumPy's rules for NaN and for empty reductions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReduceFn {
    /// The sum; wrapping int64 for integers and bool. 0 if empty.
    Sum,
    /// The mean of floats. NaN if empty.
    Mean,
    /// The greatest value, or NaN if there is one. Must not be empty.
    Max,
    /// The least value, or NaN if there is one. Must not be empty.
    Min,
    /// The product; wrapping int64 for integers and bool. 1 if empty.
    Prod,
    /// The index of the first greatest value (or NaN), int64. Must not be empty.
    Argmax,
    /// The index of the first least value (or NaN), int64. Must not be empty.
    Argmin,
    /// Whether any value is nonzero, bool.
    Any,
    /// Whether all values are nonzero, bool.
    All,
}

impl ReduceFn {
    /// All functions.
    pub const ALL: [ReduceFn; 9] = {
        use ReduceFn::*;
        [Sum, Mean, Max, Min, Prod, Argmax, Argmin, Any, All]
    };

    fn name(self) -> &'static str {
        match self {
            ReduceFn::Sum => "sum",
            ReduceFn::Mean => "mean",
            ReduceFn::Max => "max",
            ReduceFn::Min => "min",
            ReduceFn::Prod => "prod",
            ReduceFn::Argmax => "argmax",
            ReduceFn::Argmin => "argmin",
            ReduceFn::Any => "any",
            ReduceFn::All => "all",
        }
    }

    /// Whether the result is an index.
    pub fn is_place(self) -> bool {
        matches!(self, ReduceFn::Argmax | ReduceFn::Argmin)
    }

    fn needs_a_value(self) -> bool {
        self.is_place() || matches!(self, ReduceFn::Max | ReduceFn::Min)
    }

    /// The dtype of the result.
    pub fn result(self, dtype: DType) -> DType {
        match self {
            ReduceFn::Sum | ReduceFn::Prod if !dtype.is_float() => DType::Int64,
            ReduceFn::Argmax | ReduceFn::Argmin => DType::Int64,
            ReduceFn::Any | ReduceFn::All => DType::Bool,
            _ => dtype,
        }
    }
}

/// x -> y: one value for all elements along some axes (ONNX `ReduceSum`, `ReduceMean`, ...,
/// `ArgMax`). The result is row-major. Indices are along the single axis, or into the flattened
/// tensor if all axes are reduced.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Reduce {
    /// The function.
    pub f: ReduceFn,
    /// The reduced axes; an empty list means all.
    pub axes: SmallVec<[i64; 4]>,
    /// Whether reduced axes are kept, with extent 1.
    pub keepdims: bool,
}

impl Catalog for Reduce {
    fn names() -> Vec<&'static str> {
        ReduceFn::ALL.map(ReduceFn::name).to_vec()
    }
}

impl Family for Reduce {
    fn name(&self) -> &'static str {
        self.f.name()
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [x] = exactly(self.name(), inputs)?;
        let axes = x.shape.axes(self.name(), &self.axes)?;
        self.check(x, &axes)?;
        let kept = |d: &usize| !axes.contains(d);
        let shape: Shape = if self.keepdims {
            (0..x.shape.rank()).map(|d| if kept(&d) { x.shape[d] } else { 1 }).collect()
        } else {
            (0..x.shape.rank()).filter(kept).map(|d| x.shape[d]).collect()
        };
        Ok(smallvec::smallvec![Meta::new(self.f.result(x.dtype), shape)])
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        Cost::elementwise(io, 2)
    }
}

impl Reduce {
    fn check(&self, x: &Meta, axes: &[usize]) -> Result<()> {
        let name = self.name();
        crate::ensure!(
            self.f != ReduceFn::Mean || x.dtype.is_float(),
            Error::dtype(name, [x.dtype], "a float dtype")
        );
        crate::ensure!(
            !self.f.is_place() || axes.len() == 1 || axes.len() == x.shape.rank(),
            Error::value(name, format!("axes {:?}", self.axes), "one axis, or all of them")
        );
        let count: usize = axes.iter().map(|&a| x.shape[a]).product();
        let got = || format!("no values: shape {} over axes {axes:?}", x.shape);
        crate::ensure!(
            count > 0 || !self.f.needs_a_value(),
            Error::value(name, got(), "at least one value")
        );
        Ok(())
    }
}
