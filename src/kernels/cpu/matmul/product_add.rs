//! Matrix products added to another operand: a row, or the previous contents of the result.
#![allow(unsafe_code)]

use std::sync::Arc;

use crate::error::Result;
use crate::kernels::cpu::copy::cast;
use crate::kernels::cpu::matmul::{portable_gemm, product};
use crate::kernels::cpu::onednn::matmul::{Adds, adding};
use crate::kernels::{Io, Kernel, Width};
use crate::ops::Meta;
use crate::shape::Strides;

/// The kernel of `y = a b + c` for `io` = a, b, c, y, where c has y's shape or is one row of it.
///
/// # Errors
/// [`crate::Error::Library`]; [`crate::Error::DType`] for other types than float32 and float64.
pub fn prepare([a, b, c, y]: [&Meta; 4], width: Width) -> Result<Arc<dyn Kernel>> {
    let copy = cast(&repeated(c, y), y, width);
    if a.shape.last() == Some(&0) || y.numel() == 0 {
        return Ok(Arc::new(Onto { copy, multiply: None }));
    }
    let is_row = c.shape != y.shape && c.is_contiguous();
    let adds = if is_row { Adds::Row } else { Adds::Result };
    let library = match product::is_own([a, b, y]) {
        true => None,
        false => adding(&[a, b, y], adds, width)?,
    };
    let multiply: Arc<dyn Kernel> = match library {
        Some(steps) if is_row => return Ok(Arc::new(steps)),
        Some(steps) => Arc::new(steps),
        None => portable_gemm::adding(&[a, b, y], width)?,
    };
    Ok(Arc::new(Onto { copy, multiply: Some(multiply) }))
}

/// Whether sums of a product y may start from c: float32 or float64, of y's shape or one row of it.
pub fn fits(c: &Meta, y: &Meta) -> bool {
    let leading = c.shape.iter().take_while(|&&extent| extent == 1).count();
    let row = &c.shape[leading.min(c.shape.rank().saturating_sub(1))..];
    let is_row = row == &y.shape[y.shape.rank() - 1..] && c.shape.rank() <= y.shape.rank();
    let is_wide = y.dtype.is_wide_float();
    is_wide && c.dtype == y.dtype && (c.shape == y.shape || is_row)
}

/// The added operand, broadcast to the rows of the result.
fn repeated(c: &Meta, y: &Meta) -> Meta {
    let missing = y.shape.rank() - c.shape.rank();
    let stride = |d: usize| match d.checked_sub(missing) {
        Some(own) if c.shape[own] == y.shape[d] => c.strides[own],
        _ => 0,
    };
    let strides: Strides = (0..y.shape.rank()).map(stride).collect();
    Meta { dtype: c.dtype, shape: y.shape.clone(), strides }
}

/// A product added to its result, into which the other operand is copied first.
struct Onto {
    copy: Arc<dyn Kernel>,
    multiply: Option<Arc<dyn Kernel>>,
}

impl Kernel for Onto {
    fn scratch(&self) -> usize {
        let multiply = self.multiply.as_ref().map_or(0, |kernel| kernel.scratch());
        self.copy.scratch().max(multiply)
    }

    fn threads(&self) -> usize {
        let multiply = self.multiply.as_ref().map_or(1, |kernel| kernel.threads());
        self.copy.threads().max(multiply)
    }

    fn run(&self, io: &Io) -> Result<()> {
        let (outputs, scratch) = ([io.output::<u8>(0)], io.scratch());
        // If the result shares memory with the other operand, there is nothing to copy.
        if io.input::<u8>(2) != outputs[0].cast_const() {
            let inputs = [io.input(2)];
            // SAFETY: `io` is what this was prepared for, with as much scratch memory as requested.
            self.copy.run(&unsafe { Io::new(&inputs, &outputs, scratch) })?;
        }
        let factors = [io.input(0), io.input(1)];
        // SAFETY: as above.
        let io = unsafe { Io::new(&factors, &outputs, scratch) };
        self.multiply.as_ref().map_or(Ok(()), |kernel| kernel.run(&io))
    }
}
