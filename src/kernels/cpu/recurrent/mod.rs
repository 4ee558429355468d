//! Recurrent networks: products of a few rows, one each step, and what cells compute behind them.
//! Rows are computed in blocks that depend on their number alone, so the number of threads changes
//! no bit.
#![allow(unsafe_code)]

mod backward;
mod cells;
mod forward;
mod products;
mod sequence;
mod staged;

use std::sync::Arc;

use super::copy::indices::Indices;
use super::{not_float, space};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernels::{Io, Kernel, Width, checked};
use crate::ops::recurrent::{Form, Recurrent, RecurrentGrad};
use crate::ops::{Family, Meta};
use backward::Backward;
use forward::Forward;

/// Prepares all steps of a recurrence.
///
/// # Errors
/// [`Error::DType`] for types that are not floats; [`Error::Library`].
pub fn recurrent(op: &Recurrent, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let inputs = op.inputs().len();
    let kernel = staged::prepare(io, inputs, wide, width, |wide| match wide[0].dtype {
        DType::Float32 => Ok(Arc::new(Forward::<f32>::new(op, wide, width)?)),
        DType::Float64 => Ok(Arc::new(Forward::<f64>::new(op, wide, width)?)),
        _ => not_float(op.name(), io[0]),
    })?;
    Ok(with_lengths(op.name(), &op.form, io, inputs, io[0].shape[0], kernel))
}

/// Prepares its gradient.
///
/// # Errors
/// As [`recurrent`].
pub fn recurrent_grad(op: &RecurrentGrad, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let inputs = op.inputs().len();
    let kernel = staged::prepare(io, inputs, wide, width, |wide| match wide[0].dtype {
        DType::Float32 => Ok(Arc::new(Backward::<f32>::new(op, wide, width)?)),
        DType::Float64 => Ok(Arc::new(Backward::<f64>::new(op, wide, width)?)),
        _ => not_float(op.name(), io[0]),
    })?;
    Ok(with_lengths(op.name(), &op.form, io, inputs, io[0].shape[0], kernel))
}

/// What is computed with: contiguous tensors, half precision in float32.
fn wide(meta: &Meta) -> Meta {
    let dtype = match meta.dtype {
        DType::Float16 | DType::BFloat16 => DType::Float32,
        other => other,
    };
    Meta::new(dtype, meta.shape.clone())
}

/// The kernel, which then runs only if all lengths are in range.
fn with_lengths(
    name: &'static str,
    form: &Form,
    io: &[&Meta],
    inputs: usize,
    steps: usize,
    kernel: Arc<dyn Kernel>,
) -> Arc<dyn Kernel> {
    if !form.lengths {
        return kernel;
    }
    let lengths = Indices::new(name, inputs - 1, None, io[inputs - 1]);
    let check = move |io: &Io| {
        let mut wrong = None;
        lengths.each(io, |length| {
            if !(0..=steps as i64).contains(&length) {
                wrong.get_or_insert(length);
            }
        })?;
        let error = |length| Error::value(name, length, format!("lengths from 0 to {steps}"));
        wrong.map_or(Ok(()), |length| Err(error(format!("length {length}"))))
    };
    checked(check, kernel)
}
