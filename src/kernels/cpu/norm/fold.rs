//! Coefficients of batch normalisation by fixed statistics, alone and folded into weights.
#![allow(unsafe_code)]

use std::sync::Arc;

use crate::device::team;
use crate::dtype::Element;
use crate::error::Result;
use crate::kernels::cpu::not_float;
use crate::kernels::cpu::simd::wide::Float;
use crate::kernels::{Io, Kernel, Width, kernel};
use crate::ops::Meta;

/// Tensors with one element per channel: the strides of the inputs from `first` on.
struct Channels {
    first: usize,
    steps: Vec<isize>,
    eps: f64,
}

impl Channels {
    fn new(inputs: &[&Meta], first: usize, eps: f64) -> Self {
        Channels { first, steps: inputs[first..].iter().map(|m| m.strides[0]).collect(), eps }
    }

    /// The element of channel `c` in the `i`-th tensor, 0 if there is none.
    ///
    /// # Safety
    /// `io` has the inputs that this was made for, of type `T`, and `c` is one of their channels.
    unsafe fn get<T: Float>(&self, io: &Io, i: usize, c: usize) -> f64 {
        let Some(step) = self.steps.get(i) else { return 0.0 };
        // SAFETY: by the caller's promise.
        unsafe { (*io.input::<T>(self.first + i).offset(c as isize * step)).to_f64() }
    }

    fn factor(&self, scale: f64, var: f64) -> f64 {
        scale / (var + self.eps).sqrt()
    }
}

/// The kernel for `io` = scale, var, factor.
///
/// # Errors
/// [`crate::Error::DType`] for types that are not floats.
pub fn factor(eps: f64, io: &[&Meta]) -> Result<Arc<dyn Kernel>> {
    let (channels, count) = (Channels::new(&io[..2], 0, eps), io[0].numel());
    crate::dispatch!(float io[0].dtype, T => Ok(kernel(0, move |io| {
        // SAFETY: the output is dense, and the inputs are those that this was made for.
        unsafe {
            for (c, to) in io.write::<T>(0, count).iter_mut().enumerate() {
                let [scale, var] = [0, 1].map(|i| channels.get::<T>(io, i, c));
                *to = T::from_f64(channels.factor(scale, var));
            }
        }
        Ok(())
    })), else => not_float("batch_norm_factor", io[0]))
}

/// The kernel for `io` = w, scale, bias, mean, var, optionally b, and both outputs.
///
/// # Errors
/// As [`factor`].
pub fn fold(eps: f64, axis: usize, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let inputs = &io[..io.len() - 2];
    let (channels, count) = (Channels::new(inputs, 1, eps), io[0].shape[axis]);
    let row: usize = io[0].shape[axis + 1..].iter().product();
    let rows = Rows { row, step: row * count, total: io[0].numel() };
    let parts = width.0;
    crate::dispatch!(float io[0].dtype, T => Ok(kernel(0, move |io| {
        team::ranges(count, 1, parts, &|range, _| {
            for c in range {
                // SAFETY: the tensors are those that this was made for, the weights are dense, and
                // each channel is in one range.
                unsafe { channel::<T>(&channels, io, c, &rows) };
            }
        })
    })), else => not_float("fold_batch_norm", io[0]))
}

/// The weights of a channel: rows of `row` elements, `step` apart.
struct Rows {
    row: usize,
    step: usize,
    total: usize,
}

/// Writes the weights and bias of one channel.
///
/// # Safety
/// As [`Channels::get`]; `rows` describes the weights, and nothing else accesses the channel's
/// outputs.
unsafe fn channel<T: Float>(channels: &Channels, io: &Io, c: usize, rows: &Rows) {
    // SAFETY: by the caller's promise.
    unsafe {
        let [scale, bias, mean, var, b] = [0, 1, 2, 3, 4].map(|i| channels.get::<T>(io, i, c));
        let factor = channels.factor(scale, var);
        for first in (c * rows.row..rows.total).step_by(rows.step.max(1)) {
            for i in first..first + rows.row {
                let w = *io.input::<T>(0).add(i);
                io.output::<T>(0).add(i).write(T::from_f64(w.to_f64() * factor));
            }
        }
        io.output::<T>(1).add(c).write(T::from_f64(bias + (b - mean) * factor));
    }
}
