//! Matrix products.

use serde::{Deserialize, Serialize};

use super::{Cost, Family, Meta, Metas, check_dtypes, exactly, product};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::Shape;

/// `y[..., i, j] = sum over k of a[..., i, k] * b[..., k, j]`: ONNX MatMul for operands of at least
/// two dimensions, whose leading dimensions broadcast as in NumPy. Both have the same float or
/// integer type; half types are accumulated in float32, integers wrap.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Matmul;

catalog!(Matmul => "matmul");

impl Family for Matmul {
    fn name(&self) -> &'static str {
        "matmul"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [a, b] = exactly(self.name(), inputs)?;
        let is_number = |dtype: DType| dtype.is_float() || dtype.is_int();
        check_dtypes(self.name(), inputs, is_number, "two equal float or integer types")?;
        let shape = product_shape(&a.shape, &b.shape)?;
        shape.checked_numel(self.name())?;
        Ok(smallvec::smallvec![Meta::new(a.dtype, shape)])
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        let depth = *io[0].shape.last().expect("checked by infer");
        Cost::of(io, product(&[2, io[2].numel(), depth]))
    }
}

fn product_shape(a: &Shape, b: &Shape) -> Result<Shape> {
    let refuse = |want: &str| Error::shape("matmul", [a, b], want);
    crate::ensure!(a.rank() >= 2 && b.rank() >= 2, refuse("at least two dimensions each"));
    let ((batch_a, [m, k]), (batch_b, [depth, n])) = (split(a), split(b));
    crate::ensure!(k == depth, refuse("as many columns on the left as rows on the right"));
    let batch = Shape::broadcast("matmul", &batch_a, &batch_b)
        .map_err(|_| refuse("leading dimensions that broadcast together"))?;
    Ok(batch.iter().copied().chain([m, n]).collect())
}

/// The leading dimensions and the last two.
fn split(shape: &Shape) -> (Shape, [usize; 2]) {
    let (batch, matrix) = shape.split_at(shape.rank() - 2);
    (batch.into(), [matrix[0], matrix[1]])
}
