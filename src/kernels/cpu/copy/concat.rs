//! Joining tensors along an axis.
#![allow(unsafe_code)]

use std::sync::Arc;

use super::mover;
use crate::error::Result;
use crate::kernels::cpu::loops::Loop;
use crate::kernels::{Io, Kernel, Width};
use crate::ops::copy::Concat;
use crate::ops::{Family, Meta};

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
