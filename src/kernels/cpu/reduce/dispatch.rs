//! The fold for each reduction and dtype.

use std::sync::Arc;

use super::fold::{Extreme, Fold, Operand, Ordered, Place, Product, Sum, Truth, store, store_mean};
use super::{Access, Plain, Runner, Vector, prepare};
use crate::dtype::DType;
use crate::error::Result;
use crate::kernels::{Kernel, Width};
use crate::ops::reduce::{Reduce, ReduceFn};
use crate::ops::{Family, Meta};

/// Prepares x -> y for a reduction.
///
/// # Errors
/// Those of [`Shape::axes`](crate::shape::Shape::axes).
pub fn reduce(op: &Reduce, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let x = io[0];
    let axes = x.shape.axes(op.name(), &op.axes)?;
    let (result, ordered) = (io[1].dtype, op.f.is_place());
    let job = Job { x, axes: &axes, result, ordered, width };
    Ok(crate::dispatch!(x.dtype, T => job.of::<T>(op.f)))
}

/// A reduction to be prepared.
struct Job<'a> {
    x: &'a Meta,
    axes: &'a [usize],
    /// The output's dtype.
    result: DType,
    /// Whether the elements must be indexed in row-major order.
    ordered: bool,
    width: Width,
}

/// The type in which the values of an element type are summed, and the instruction sets used.
trait Class: Ordered {
    type Runner: Runner;
}

impl Class for f32 {
    type Runner = Vector;
}

impl Class for f64 {
    type Runner = Vector;
}

impl Class for i64 {
    type Runner = Plain;
}

type Value<T> = <T as Operand>::Value;
type Totals<T> = <Value<T> as Ordered>::Total;
type Fast<T> = <Value<T> as Class>::Runner;

impl Job<'_> {
    /// Prepares the reduction of elements of type `T`.
    fn of<T: Operand<Value: Class>>(&self, f: ReduceFn) -> Arc<dyn Kernel> {
        let mean = f == ReduceFn::Mean;
        match f {
            ReduceFn::Sum | ReduceFn::Mean => self.fold::<T, Sum<Totals<T>>, Fast<T>>(mean),
            ReduceFn::Max => self.fold::<T, Extreme<true>, Fast<T>>(false),
            ReduceFn::Min => self.fold::<T, Extreme<false>, Fast<T>>(false),
            ReduceFn::Prod => self.fold::<T, Product<Totals<T>>, Plain>(false),
            ReduceFn::Argmax => self.fold::<T, Place<true>, Plain>(false),
            ReduceFn::Argmin => self.fold::<T, Place<false>, Plain>(false),
            ReduceFn::Any => self.fold::<T, Truth<false>, Plain>(false),
            ReduceFn::All => self.fold::<T, Truth<true>, Plain>(false),
        }
    }

    fn fold<T: Operand, F: Fold<Value<T>>, C: Runner>(&self, mean: bool) -> Arc<dyn Kernel> {
        let store = crate::dispatch!(self.result, O => {
            if mean { store_mean::<O, F::Result> } else { store::<O, F::Result> }
        });
        let access = Access { load: T::load, direct: T::DIRECT, store };
        prepare::<Value<T>, F, C>(self.x, self.axes, self.ordered, access, self.width)
    }
}
