//! Joining tensors along an axis.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
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
        let want = || format!("shapes that agree except on axis {axis}");
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
}
