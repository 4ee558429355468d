//! Running sums, products and maxima.

use serde::{Deserialize, Serialize};

use super::{Catalog, Cost, Family, Meta, Metas, exactly};
use crate::dtype::DType;
use crate::error::Result;

/// The function of a scan.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScanFn {
    /// The sum; wrapping int64 for integers and bool.
    Sum,
    /// The product; wrapping int64 for integers and bool.
    Prod,
    /// The greatest; NaN, once there is one.
    Max,
}

/// x -> y: the sum, product or greatest of all elements up to each one along an axis (ONNX `CumSum`,
/// `CumProd`), in float64 or int64; in order, but for the sums of long rows, which are added up in
/// segments. y has the memory order of x.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Scan {
    /// The function.
    pub f: ScanFn,
    /// The axis.
    pub axis: i64,
    /// Whether the element itself is left out: the first result is then 0, 1 or the least number.
    pub exclusive: bool,
    /// Whether it goes from the last element to the first.
    pub reverse: bool,
}

impl ScanFn {
    /// All functions.
    const ALL: [ScanFn; 3] = [ScanFn::Sum, ScanFn::Prod, ScanFn::Max];

    fn name(self) -> &'static str {
        match self {
            ScanFn::Sum => "cumsum",
            ScanFn::Prod => "cumprod",
            ScanFn::Max => "running_max",
        }
    }
}

impl Catalog for Scan {
    fn names() -> Vec<&'static str> {
        ScanFn::ALL.map(ScanFn::name).to_vec()
    }
}

impl Family for Scan {
    fn name(&self) -> &'static str {
        self.f.name()
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [x] = exactly(self.name(), inputs)?;
        x.shape.axis(self.name(), self.axis)?;
        let dtype = if x.dtype.is_float() { x.dtype } else { DType::Int64 };
        Ok(smallvec::smallvec![x.like(dtype)])
    }

    fn in_place(&self) -> &'static [(usize, usize)] {
        &[(0, 0)]
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        Cost::elementwise(io, 4)
    }
}
