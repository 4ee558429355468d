//! Joining tensors along an axis.
#![allow(unsafe_code)]

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::kernels::cpu::loops::Loop;
use crate::kernels::{Io, Kernel, Width};
use crate::ops::{Catalog, Family, Meta, Metas, elementwise};
use crate::shape::Shape;
use crate::view;

/// Concatenates one or more tensors of one dtype along `axis` (ONNX Concat). Their shapes agree
/// except for that axis.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Concat {
    /// The axis; negative ones count from the back.
    pub axis: i64,
}

impl Catalog for Concat {
    fn names() -> Vec<&'static str> {
        vec!["concat"]
    }
}

impl Concat {
    fn shape(&self, inputs: &[&Meta], axis: usize) -> Result<Shape> {
        let first = &inputs[0].shape;
        let fits = |m: &&Meta| {
            m.shape.rank() == first.rank()
                && (0..first.rank()).all(|d| d == axis || m.shape[d] == first[d])
        };
        let shapes = inputs.iter().map(|m| &m.shape);
        let want = || format!("shapes that agree but for axis {axis}");
        crate::ensure!(inputs.iter().all(fits), Error::shape(self.name(), shapes, want()));
        let mut extents = inputs.iter().map(|m| m.shape[axis]);
        let sum = extents.try_fold(0usize, |sum, n| sum.checked_add(n));
        let want = || Error::shape(self.name(), [first], "fewer than 2^60 elements");
        let shape: Shape = (0..first.rank())
            .map(|d| if d == axis { sum } else { Some(first[d]) })
            .collect::<Option<Vec<_>>>()
            .ok_or_else(want)?
            .into_iter()
            .collect();
        shape.checked_numel(self.name())?;
        Ok(shape)
    }
}

impl Family for Concat {
    fn name(&self) -> &'static str {
        "concat"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let name = self.name();
        let none = Error::Arity { op: name.into(), got: 0, want: "one or more".into() };
        let first = *inputs.first().ok_or(none)?;
        elementwise::same_dtype(name, inputs)?;
        let shape = self.shape(inputs, first.shape.axis(name, self.axis)?)?;
        let ordered = inputs.iter().find(|m| m.numel() > 0 && !view::repeats(m));
        let strides = match ordered {
            Some(meta) => shape.dense_like(&meta.strides),
            None => shape.contiguous(),
        };
        Ok(smallvec::smallvec![Meta { dtype: first.dtype, shape, strides }])
    }

    fn any_output_strides(&self) -> bool {
        true
    }

    fn cpu(&self, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
        let (output, inputs) = io.split_last().expect("an operation has an output");
        let axis = output.shape.axis(self.name(), self.axis)?;
        let (mut pieces, mut start) = (Vec::new(), 0);
        for (input, meta) in inputs.iter().enumerate() {
            let place = Meta {
                dtype: output.dtype,
                shape: meta.shape.clone(),
                strides: output.strides.clone(),
            };
            let offset = start as isize * output.strides[axis] * output.dtype.size() as isize;
            pieces.push(Piece { input, offset, copy: super::mover(meta, &place, width) });
            start += meta.shape[axis];
        }
        Ok(Arc::new(Joiner { pieces }))
    }
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
