//! Moving data without computing: copy, cast, fill, ranges, concatenation.
#![allow(unsafe_code)]

mod cast;
pub mod elements;
pub mod gather;
pub mod indices;
mod lines;
pub mod scatter;

use std::sync::Arc;

pub use cast::{cast, convert};

use crate::device::team;
use crate::dispatch;
use crate::dtype::Element;
use crate::error::Result;
use crate::kernels::cpu::strided::loops::{Loop, Operand, identity};
use crate::kernels::{Io, Kernel, Width, kernel};
use crate::ops::copy::{Arange, Concat, Fill};
use crate::ops::{Family, Meta};

/// A loop that copies elements unchanged.
pub fn mover(from: &Meta, to: &Meta, width: Width) -> Loop<2> {
    let operands = [Operand::plain(from), Operand::plain(to)];
    Loop::new(identity(to.dtype.size()), operands, width)
}

/// Prepares copying each input to its piece of the output.
///
/// # Errors
/// Those of [`Shape::axis`](crate::shape::Shape::axis).
pub fn concat(op: &Concat, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let (output, inputs) = io.split_last().expect("an operation has an output");
    let axis = output.shape.axis(op.name(), op.axis)?;
    let (mut pieces, mut start) = (Vec::new(), 0);
    for (input, meta) in inputs.iter().enumerate() {
        let place = Meta {
            dtype: output.dtype,
            shape: meta.shape.clone(),
            strides: output.strides.clone(),
        };
        let offset = start as isize * output.strides[axis] * output.dtype.size() as isize;
        pieces.push(Piece { input, offset, copy: mover(meta, &place, width) });
        start += meta.shape[axis];
    }
    Ok(Arc::new(Joiner { pieces }))
}

/// One input, and its destination.
struct Piece {
    input: usize,
    /// In bytes.
    offset: isize,
    copy: Loop<2>,
}

struct Joiner {
    pieces: Vec<Piece>,
}

impl Kernel for Joiner {
    fn run(&self, io: &Io) -> Result<()> {
        for Piece { input, offset, copy } in &self.pieces {
            let to = io.output::<u8>(0).wrapping_offset(*offset);
            // SAFETY: the piece is a part of the output, which no input overlaps.
            unsafe { copy.run_at([io.input::<u8>(*input).cast_mut(), to])? };
        }
        Ok(())
    }
}

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
        team::ranges(count, 1024, width, &|range, _| {
            for i in range {
                // SAFETY: the output has `count` elements, `stride` apart.
                unsafe { io.output::<T>(0).offset(i as isize * stride).write(value(i)) };
            }
        })
    })
}
