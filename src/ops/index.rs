//! Indexing by a tensor of indices.

use serde::{Deserialize, Serialize};

use super::{Cost, Family, Meta, Metas, check_float, exactly};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::{Shape, memory_order};

/// (x, indices) -> y: `y[a.., i.., b..] = x[a.., indices[i..], b..]` where `indices` replace `axis`
/// (ONNX `Gather`). Indices are of any int or float dtype and rank; negative ones count from the
/// end. An index out of range is an [`Error::Index`], a fractional one an [`Error::Value`], before
/// anything is written. y is row-major; where places along one axis of a dense x are taken, and that
/// is not the innermost in memory, y lies in memory as x does (images stay channels-last).
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Gather {
    /// The axis of x that is indexed.
    pub axis: i64,
}

catalog!(
    Gather => "gather",
    GatherElements => "gather_elements",
    GatherElementsGrad => "gather_elements_grad",
    GatherGrad => "gather_grad"
);

impl Family for Gather {
    fn name(&self) -> &'static str {
        "gather"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [x, indices] = exactly(self.name(), inputs)?;
        check_indices(self.name(), [x.dtype, indices.dtype])?;
        let axis = x.shape.axis(self.name(), self.axis)?;
        let (before, after) = (&x.shape[..axis], &x.shape[axis + 1..]);
        let shape: Shape = [before, &indices.shape, after].concat().into_iter().collect();
        shape.checked_numel(self.name())?;
        let is_inner = memory_order(x.strides.iter().copied()).last() == Some(&axis);
        let keeps_order = indices.shape.rank() == 1 && !is_inner && x.is_dense();
        let strides = if keeps_order { shape.dense_like(&x.strides) } else { shape.contiguous() };
        Ok(smallvec::smallvec![Meta { dtype: x.dtype, strides, shape }])
    }

    fn checked(&self) -> &'static [usize] {
        &[1]
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        Cost::elementwise(&io[1..], 1)
    }

    moves_only!();
}

impl Gather {
    /// The axis, x and y with their axes in the order in which y, as inferred, is row-major.
    ///
    /// # Errors
    /// Those of [`Shape::axis`].
    pub fn row_major(&self, x: &Meta, y: &Meta) -> Result<(usize, Meta, Meta)> {
        let axis = x.shape.axis(self.name(), self.axis)?;
        if y.is_contiguous() {
            return Ok((axis, x.clone(), y.clone()));
        }
        let order = memory_order(y.strides.iter().copied());
        let place = order.iter().position(|&d| d == axis).unwrap_or(axis);
        Ok((place, x.permuted(&order), y.permuted(&order)))
    }
}

/// (dy, indices) -> dx: the gradient of [`Gather`] with respect to x, whose axis has `size`
/// entries. Where an index repeats, the gradients are added in the order of the indices, in float32
/// for float16 and bfloat16. dx is row-major.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct GatherGrad {
    /// The axis of x that was indexed.
    pub axis: i64,
    /// Its extent.
    pub size: usize,
}

impl GatherGrad {
    /// The shape of dx, and the axis.
    ///
    /// # Errors
    /// [`Error::Shape`] where dy does not contain the shape of the indices.
    pub fn shape(&self, dy: &Meta, indices: &Meta) -> Result<(Shape, usize)> {
        let (rank, taken) = (dy.shape.rank(), indices.shape.rank());
        let want = || format!("a gradient that contains the indices' shape {}", indices.shape);
        let bad = || Error::shape(self.name(), [&dy.shape, &indices.shape], want());
        crate::ensure!(rank >= taken, bad());
        let any: Shape = (0..=rank - taken).collect();
        let axis = any.axis(self.name(), self.axis)?;
        crate::ensure!(dy.shape[axis..axis + taken] == indices.shape[..], bad());
        let (before, after) = (&dy.shape[..axis], &dy.shape[axis + taken..]);
        let shape: Shape = [before, &[self.size], after].concat().into_iter().collect();
        shape.checked_numel(self.name())?;
        Ok((shape, axis))
    }
}

impl Family for GatherGrad {
    fn name(&self) -> &'static str {
        "gather_grad"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [dy, indices] = exactly(self.name(), inputs)?;
        check_indices(self.name(), [dy.dtype, indices.dtype])?;
        check_float(self.name(), dy)?;
        let (shape, _) = self.shape(dy, indices)?;
        Ok(smallvec::smallvec![Meta::new(dy.dtype, shape)])
    }

    fn checked(&self) -> &'static [usize] {
        &[1]
    }
}

/// (x, places) -> y: `y[a.., i, b..] = x[a.., places[a.., i, b..], b..]` (ONNX `GatherElements`). The
/// places are int64, as [`Places`] makes them, and have the shape of x but for the axis; one out of
/// range is an [`Error::Index`]. y is row-major.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct GatherElements {
    /// The axis of x that places are in.
    pub axis: i64,
}

impl Family for GatherElements {
    fn name(&self) -> &'static str {
        "gather_elements"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [x, places] = exactly(self.name(), inputs)?;
        check_places(self.name(), [x.dtype, places.dtype])?;
        let axis = x.shape.axis(self.name(), self.axis)?;
        let fits = |d: usize| d == axis || x.shape[d] == places.shape[d];
        let is_like = x.shape.rank() == places.shape.rank() && (0..x.shape.rank()).all(fits);
        let want = || format!("places of the shape of x but for axis {axis}");
        crate::ensure!(is_like, Error::shape(self.name(), [&x.shape, &places.shape], want()));
        Ok(smallvec::smallvec![Meta::new(x.dtype, places.shape.clone())])
    }

    fn may_fail(&self) -> bool {
        true
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        Cost::elementwise(&io[1..], 2)
    }

    moves_only!();
}

/// (dy, places) -> dx: the gradient of [`GatherElements`] with respect to x, whose axis has `size`
/// elements. What is added to one element is added in the order of the axis, in float32 for float16
/// and bfloat16. dx is row-major.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct GatherElementsGrad {
    /// The axis of x that places are in.
    pub axis: i64,
    /// Its extent.
    pub size: usize,
}

impl Family for GatherElementsGrad {
    fn name(&self) -> &'static str {
        "gather_elements_grad"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [dy, places] = exactly(self.name(), inputs)?;
        check_places(self.name(), [dy.dtype, places.dtype])?;
        check_float(self.name(), dy)?;
        let axis = dy.shape.axis(self.name(), self.axis)?;
        let want = || format!("places of the gradient's shape {}", dy.shape);
        let bad = || Error::shape(self.name(), [&dy.shape, &places.shape], want());
        crate::ensure!(dy.shape == places.shape, bad());
        let mut shape = dy.shape.clone();
        shape[axis] = self.size;
        shape.checked_numel(self.name())?;
        Ok(smallvec::smallvec![Meta::new(dy.dtype, shape)])
    }

    fn may_fail(&self) -> bool {
        true
    }
}

/// Checks that the last of these dtypes is that of places.
fn check_places(op: &'static str, dtypes: [DType; 2]) -> Result<()> {
    let fits = dtypes[1] == DType::Int64;
    crate::ensure!(fits, Error::dtype(op, dtypes, "places of int64"));
    Ok(())
}

macro_rules! places_of {
    ($($variant:ident => $name:literal,)*) => {
        /// The operation that looks positions up, for error messages.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[allow(missing_docs)]
        pub enum PlacesOf {
            $($variant),*
        }

        impl PlacesOf {
            fn name(self) -> &'static str {
                match self {
                    $(PlacesOf::$variant => $name),*
                }
            }
        }

        catalog!(Places => $($name)*);
    };
}

places_of! {
    Bincount => "bincount_places",
    CrossEntropy => "cross_entropy_places",
    CtcLoss => "ctc_loss_places",
    EmbeddingBag => "embedding_bag_places",
    GatherNd => "gather_nd_places",
    Index => "index_places",
    IndexAdd => "index_add_places",
    IndexCopy => "index_copy_places",
    IndexFill => "index_fill_places",
    MaskedScatter => "masked_scatter_places",
    MaxUnpool => "max_unpool_places",
    MultilabelMarginLoss => "multilabel_margin_loss_places",
    Multinomial => "multinomial_places",
    NllLoss => "nll_loss_places",
    OneHot => "one_hot_places",
    Onehot => "onehot_places",
    PutAlongAxis => "put_along_axis_places",
    RavelMultiIndex => "ravel_multi_index_places",
    Scatter => "scatter_places",
    ScatterAdd => "scatter_add_places",
    ScatterElements => "scatter_elements_places",
    ScatterNd => "scatter_nd_places",
    ScatterReduce => "scatter_reduce_places",
    TakeAlongAxis => "take_along_axis_places",
    UnravelIndex => "unravel_index_places",
}

/// indices -> int64: positions in an axis of `size` entries, counted from its start, checked as in
/// [`Gather`]; without a size, any integers.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Places {
    /// The operation they are for.
    pub of: PlacesOf,
    /// The number of entries of the axis, if it is to be checked.
    pub size: Option<usize>,
    /// Whether negative indices count from the end; if not, they are out of range.
    #[serde(default = "yes")]
    pub wraps: bool,
}

fn yes() -> bool {
    true
}

impl Family for Places {
    fn name(&self) -> &'static str {
        self.of.name()
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [indices] = exactly(self.name(), inputs)?;
        check_indices(self.name(), [indices.dtype])?;
        Ok(smallvec::smallvec![Meta::new(DType::Int64, indices.shape.clone())])
    }

    fn checked(&self) -> &'static [usize] {
        &[0]
    }
}

/// Checks that the last of these dtypes is valid for indices.
fn check_indices<const N: usize>(op: &'static str, dtypes: [DType; N]) -> Result<()> {
    let dtype = dtypes[N - 1];
    let fits = dtype.is_float() || dtype.is_int() && !dtype.is_storage();
    crate::ensure!(fits, Error::dtype(op, dtypes, "indices of an int or float dtype"));
    Ok(())
}
