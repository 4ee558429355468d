//! Matrix products.

use serde::{Deserialize, Serialize};

use super::{Cost, Family, Meta, Metas, exactly};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::Shape;

/// `y[..., i, j] = sum over k of a[..., i, k] * b[..., k, j]`: ONNX MatMul for operands of at least
/// two dimensions, whose leading dimensions broadcast as in NumPy. Both have the same float or
/// integer type; half types are accumulated in float32, integers wrap.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Matmul;

/// `y = a b + c`, for graphs whose results need not be bit-identical to [`Matmul`] and addition:
/// inputs a (..., M, K), b (..., K, N) and c, which has the shape of the product or is a single row
/// (N,) of it. float32 or float64. The sum of the K products may start from c: with u half the
/// distance from 1 to the next number, an element is off by at most (K + 1) u times the sum of the
/// magnitudes of its products and of c. The separate operations have the same bound.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct MatmulAdd;

catalog!(Matmul => "matmul", MatmulAdd => "matmul_add");

impl Family for Matmul {
    fn name(&self) -> &'static str {
        "matmul"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [a, b] = exactly(self.name(), inputs)?;
        let is_number = a.dtype.is_float() || a.dtype.is_int();
        crate::ensure!(
            a.dtype == b.dtype && is_number,
            Error::dtype(self.name(), [a.dtype, b.dtype], "two equal float or integer types")
        );
        let shape = product_shape(&a.shape, &b.shape)?;
        shape.checked_numel(self.name())?;
        Ok(smallvec::smallvec![Meta::new(a.dtype, shape)])
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        let depth = *io[0].shape.last().expect("checked by infer") as u64;
        let bytes = io.iter().map(|m| m.bytes() as u64).sum();
        Cost { flops: 2 * io[2].numel() as u64 * depth, behind: 0, bytes }
    }
}

impl Family for MatmulAdd {
    fn name(&self) -> &'static str {
        "matmul_add"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [a, b, c] = exactly(self.name(), inputs)?;
        let is_wide = matches!(a.dtype, DType::Float32 | DType::Float64) && c.dtype == a.dtype;
        let dtypes = inputs.iter().map(|meta| meta.dtype);
        crate::ensure!(is_wide, Error::dtype(self.name(), dtypes, "three of float32 or float64"));
        let y = Matmul.infer(&[a, b])?;
        let columns = y[0].shape.last().copied().into_iter();
        let leading = c.shape.iter().take_while(|&&extent| extent == 1).count();
        let is_row =
            c.shape[leading.min(c.shape.rank().saturating_sub(1))..].iter().copied().eq(columns);
        let fits = c.shape == y[0].shape || is_row && c.shape.rank() <= y[0].shape.rank();
        let want = || format!("a third of shape {} or one row of it", y[0].shape);
        crate::ensure!(fits, Error::shape(self.name(), [&a.shape, &b.shape, &c.shape], want()));
        Ok(y)
    }

    fn in_place(&self) -> &'static [(usize, usize)] {
        &[(2, 0)]
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        let product = Matmul.cost(&[io[0], io[1], io[3]]);
        let bytes = product.bytes + io[2].bytes() as u64;
        Cost { flops: product.flops + io[3].numel() as u64, behind: 0, bytes }
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
