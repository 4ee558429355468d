//! The fold for each reduction and dtype.

use std::sync::Arc;

use super::ReduceFn;
use crate::dtype::DType;
use crate::kernels::cpu::reduce::fold::{
    Extreme, Fold, Operand, Ordered, Place, Product, Sum, Truth, store, store_mean,
};
use crate::kernels::cpu::reduce::{Access, Plain, Runner, Vector, prepare};
use crate::kernels::{Kernel, Width};
use crate::ops::Meta;

/// A reduction to be prepared.
pub(super) struct Job<'a> {
    pub(super) x: &'a Meta,
    pub(super) axes: &'a [usize],
    /// The output's dtype.
    pub(super) result: DType,
    /// Whether the elements must be indexed in row-major order.
    pub(super) ordered: bool,
    pub(super) width: Width,
}

/// The type in which the values of an element type are summed, and the instruction sets used.
pub(super) trait Class: Ordered {
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
    pub(super) fn of<T: Operand<Value: Class>>(&self, f: ReduceFn) -> Arc<dyn Kernel> {
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
