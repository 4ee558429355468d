//! Tensors made from scalars.
#![allow(unsafe_code)]

use std::sync::Arc;

use crate::device::team;
use crate::dispatch;
use crate::dtype::Element;
use crate::error::Result;
use crate::kernels::cpu::loops::{Loop, Operand, identity};
use crate::kernels::{Kernel, Width, kernel};
use crate::ops::Meta;
use crate::ops::copy::{Arange, Fill};

/// Prepares writing one value everywhere.
///
/// # Errors
/// Those of [`Fill::element`].
pub fn fill(op: &Fill, to: &Meta, width: Width) -> Result<Arc<dyn Kernel>> {
    let value = dispatch!(op.dtype, T => Operand::constant_of(op.element::<T>()?));
    let operands = [value, Operand::plain(to)];
    Ok(Arc::new(Loop::new(identity(op.dtype.size()), operands, width)))
}

/// Prepares writing evenly spaced numbers.
///
/// # Errors
/// Those of [`Arange::integers`].
pub fn arange(op: &Arange, to: &Meta, width: Width) -> Result<Arc<dyn Kernel>> {
    let (count, stride) = (op.count, to.strides[0]);
    if op.dtype.is_int() {
        let [start, step] = op.integers()?;
        let value = move |i: usize| start.wrapping_add(step.wrapping_mul(i as i64));
        return Ok(dispatch!(op.dtype, T => {
            numbers(count, stride, width, move |i| T::from_i64(value(i)))
        }));
    }
    let (start, step) = (op.start.to_f64(), op.step.to_f64());
    let value = move |i: usize| start + i as f64 * step;
    Ok(dispatch!(op.dtype, T => {
        numbers(count, stride, width, move |i| T::from_f64(value(i)))
    }))
}

/// A kernel that writes `value(i)` to every position `i`.
fn numbers<T: Element>(
    count: usize,
    stride: isize,
    Width(width): Width,
    value: impl Fn(usize) -> T + Send + Sync + 'static,
) -> Arc<dyn Kernel> {
    kernel(0, move |io| {
        team::parallel(width, &|part| {
            for i in team::share(count, 1024, width, part) {
                // SAFETY: the output has `count` elements, `stride` apart.
                unsafe { io.output::<T>(0).offset(i as isize * stride).write(value(i)) };
            }
        })
    })
}
