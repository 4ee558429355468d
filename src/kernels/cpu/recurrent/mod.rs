//! Recurrent networks: products of a few rows, one each step, and what cells compute behind them.
//! Rows are computed in blocks that depend on their number alone, so the number of threads changes
//! no bit.
#![allow(unsafe_code)]

mod backward;
mod cells;
mod forward;
mod plan;
mod products;
mod sequence;
mod staged;

use std::sync::Arc;

use super::copy::{self, indices::Indices};
use super::{not_float, space};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernels::{Io, Kernel, Packing, Width, checked};
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

/// The two parts of a recurrence whose weights are not contiguous: their copy, and the rest.
///
/// # Errors
/// As [`recurrent`].
pub fn packing(op: &Recurrent, io: &[&Meta], width: Width) -> Result<Option<Packing>> {
    let plain = Meta::new(io[1].dtype, io[1].shape.clone());
    if io[1].is_contiguous() {
        return Ok(None);
    }
    let pack = Arc::new(copy::mover(io[1], &plain, width));
    let mut rest = io.to_vec();
    rest[1] = &plain;
    let rest = recurrent(op, &rest, width)?;
    Ok(Some(Packing { input: 1, bytes: plain.bytes(), pack, rest }))
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
        lengths.each(io, 0..lengths.count(), |lengths| {
            let outside = |length: &&i64| !(0..=steps as i64).contains(*length);
            wrong = wrong.or(lengths.iter().find(outside).copied());
        })?;
        let error = |length| Error::value(name, length, format!("lengths from 0 to {steps}"));
        wrong.map_or(Ok(()), |length| Err(error(format!("length {length}"))))
    };
    checked(check, kernel)
}
