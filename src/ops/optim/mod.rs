//! Optimizers: each operation updates one parameter and its moments in place.
//!
//! Hyperparameters are float32 or float64 tensors of shape (1,), read when the operation runs, so
//! that they may change from step to step. Arithmetic is in the moments' dtype: float64 for float64
//! parameters, float32 for all others. Decaying moments are set to zero where they would be
//! denormal.

mod adagrad;
mod adam;
mod rmsprop;
mod sgd;

pub use adagrad::Adagrad;
pub use adam::{Adam, STEP};
pub use rmsprop::Rmsprop;
pub use sgd::Sgd;

use super::{Meta, Metas};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::view;

/// The number of the input that holds the gradient.
pub const GRADIENT: usize = 1;

/// The requirements on an optimizer's inputs; inputs 0 and 1 are the parameter and its gradient.
struct Signature<'a> {
    op: &'static str,
    /// The number of inputs.
    inputs: usize,
    /// Which inputs are moments.
    moments: &'a [usize],
    /// Which inputs are integers of shape (1,); the remaining ones are hyperparameters.
    counters: &'a [usize],
}

impl Signature<'_> {
    /// The metas of the parameter and the moments, which an update preserves.
    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let (got, want) = (inputs.len(), self.inputs);
        crate::ensure!(
            got == want,
            Error::Arity { op: self.op.into(), got, want: want.to_string() }
        );
        let param = inputs[0];
        crate::ensure!(
            param.dtype.is_float(),
            Error::dtype(self.op, [param.dtype], "a parameter of a float dtype")
        );
        self.check_like(param, inputs[1], param.dtype, "gradient")?;
        for &m in self.moments {
            self.check_like(param, inputs[m], moment_dtype(param.dtype), "moment")?;
            self.check_places(inputs[m], "moment")?;
        }
        self.check_places(param, "parameter")?;
        (2..want)
            .filter(|i| !self.moments.contains(i))
            .try_for_each(|i| self.check_one(i, inputs))?;
        Ok(std::iter::once(0)
            .chain(self.moments.iter().copied())
            .map(|i| inputs[i].clone())
            .collect())
    }

    fn check_like(&self, param: &Meta, other: &Meta, dtype: DType, what: &str) -> Result<()> {
        let want = || format!("a {what} of the parameter's shape");
        crate::ensure!(
            other.shape == param.shape,
            Error::shape(self.op, [&param.shape, &other.shape], want())
        );
        let want = || format!("a {what} of dtype {dtype}");
        crate::ensure!(
            other.dtype == dtype,
            Error::dtype(self.op, [param.dtype, other.dtype], want())
        );
        Ok(())
    }

    fn check_places(&self, meta: &Meta, what: &str) -> Result<()> {
        crate::ensure!(
            !view::repeats(meta),
            Error::value(
                self.op,
                format!("an expanded {what}"),
                "each element in a place of its own"
            )
        );
        Ok(())
    }

    fn check_one(&self, i: usize, inputs: &[&Meta]) -> Result<()> {
        let (meta, counter) = (inputs[i], self.counters.contains(&i));
        let (fits, dtypes) = match counter {
            true => (meta.dtype == DType::Int32, "int32"),
            false => (matches!(meta.dtype, DType::Float32 | DType::Float64), "float32 or float64"),
        };
        let want = || format!("input {i} of dtype {dtypes}");
        crate::ensure!(fits, Error::dtype(self.op, [meta.dtype], want()));
        let want = || format!("input {i} of shape (1,)");
        crate::ensure!(*meta.shape == [1], Error::shape(self.op, [&meta.shape], want()));
        Ok(())
    }
}

/// The dtype of a parameter's moments.
pub fn moment_dtype(param: DType) -> DType {
    if param == DType::Float64 { DType::Float64 } else { DType::Float32 }
}
