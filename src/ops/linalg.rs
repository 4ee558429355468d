//! Linear algebra: factorisations of matrices, functions of them, and solutions of linear systems.
//! Tensors are stacks of matrices, in their last two dimensions.

use serde::{Deserialize, Serialize};

use super::{Cost, Family, Meta, Metas, check_dtypes, exactly};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::Shape;

/// What is made of a matrix A.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LinalgFn {
    /// The lower triangular L with A = L L^T, of the lower triangle of A.
    Cholesky,
    /// The determinant.
    Det,
    /// The sign of the determinant, and the logarithm of its magnitude.
    Slogdet,
    /// The inverse.
    Inv,
    /// Q with orthonormal columns and the upper triangular R, whose diagonal is not negative, with
    /// A = Q R.
    Qr,
    /// U, the singular values in descending order, and V^T, with A = U S V^T; as many columns and
    /// rows as A has of the fewer.
    Svd,
    /// The eigenvalues in ascending order and the eigenvectors, as columns, of a symmetric matrix,
    /// of which the lower triangle is read.
    Eigh,
}

/// A -> what [`LinalgFn`] says: (..., m, n), square except for `qr` and `svd`, of float32 or
/// float64. Outputs are row-major. A matrix without a result is an [`Error::Value`] that names its
/// index.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Linalg {
    /// The function.
    pub f: LinalgFn,
}

/// (A, B) -> X with A X = B: (..., n, n), (..., n, k) -> (..., n, k), of float32 or float64, by LU
/// factors with partial pivoting. X is row-major. A singular A is an [`Error::Value`] that names
/// its index.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Solve {}

/// [`Solve`] for a triangular A, of which the other triangle is not read.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct TriangularSolve {
    /// Whether the lower triangle is read.
    pub lower: bool,
    /// Whether the diagonal counts as ones, and is not read either.
    pub unit: bool,
}

catalog!(
    Linalg => "cholesky" "det" "slogdet" "inv" "qr" "svd" "eigh",
    Solve => "solve",
    TriangularSolve => "triangular_solve"
);

impl Linalg {
    /// The shapes of the outputs for stacks of this shape, and of m x n matrices.
    fn shapes(&self, stack: &[usize], [m, n]: [usize; 2]) -> Vec<Shape> {
        let with = |last: &[usize]| stack.iter().chain(last).copied().collect();
        let few = m.min(n);
        match self.f {
            LinalgFn::Cholesky | LinalgFn::Inv => vec![with(&[n, n])],
            LinalgFn::Det => vec![with(&[])],
            LinalgFn::Slogdet => vec![with(&[]), with(&[])],
            LinalgFn::Qr => vec![with(&[m, few]), with(&[few, n])],
            LinalgFn::Svd => vec![with(&[m, few]), with(&[few]), with(&[few, n])],
            LinalgFn::Eigh => vec![with(&[n]), with(&[n, n])],
        }
    }

    fn takes_any(&self) -> bool {
        matches!(self.f, LinalgFn::Qr | LinalgFn::Svd)
    }
}

impl Family for Linalg {
    fn name(&self) -> &'static str {
        match self.f {
            LinalgFn::Cholesky => "cholesky",
            LinalgFn::Det => "det",
            LinalgFn::Slogdet => "slogdet",
            LinalgFn::Inv => "inv",
            LinalgFn::Qr => "qr",
            LinalgFn::Svd => "svd",
            LinalgFn::Eigh => "eigh",
        }
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [a] = exactly(self.name(), inputs)?;
        check_dtypes(self.name(), inputs, DType::is_wide_float, FLOATS)?;
        let (stack, [m, n]) = matrices(self.name(), a)?;
        let fits = m == n || self.takes_any();
        crate::ensure!(fits, Error::shape(self.name(), [&a.shape], "square matrices"));
        let shapes = self.shapes(stack, [m, n]);
        Ok(shapes.into_iter().map(|shape| Meta::new(a.dtype, shape)).collect())
    }

    fn may_fail(&self) -> bool {
        !matches!(self.f, LinalgFn::Det | LinalgFn::Slogdet | LinalgFn::Qr)
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        // Several passes of rotations follow the reduction to few diagonals.
        let per_product = match self.f {
            LinalgFn::Cholesky | LinalgFn::Det | LinalgFn::Slogdet => 1,
            LinalgFn::Inv | LinalgFn::Qr => 4,
            LinalgFn::Svd | LinalgFn::Eigh => 16,
        };
        cubic(io, per_product)
    }
}

impl Family for Solve {
    fn name(&self) -> &'static str {
        "solve"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        infer_solution(self.name(), inputs)
    }

    fn may_fail(&self) -> bool {
        true
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        cubic(io, 2)
    }
}

impl Family for TriangularSolve {
    fn name(&self) -> &'static str {
        "triangular_solve"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        infer_solution(self.name(), inputs)
    }

    fn may_fail(&self) -> bool {
        !self.unit
    }

    fn cost(&self, io: &[&Meta]) -> Cost {
        cubic(io, 1)
    }
}

fn infer_solution(op: &'static str, inputs: &[&Meta]) -> Result<Metas> {
    let [a, b] = exactly(op, inputs)?;
    check_dtypes(op, inputs, DType::is_wide_float, FLOATS)?;
    let (stack, [m, n]) = matrices(op, a)?;
    let (right, [rows, _]) = matrices(op, b)?;
    let want = "square matrices, and as many right-hand sides of as many rows";
    let fits = m == n && n == rows && stack == right;
    crate::ensure!(fits, Error::shape(op, [&a.shape, &b.shape], want));
    Ok(smallvec::smallvec![Meta::new(b.dtype, b.shape.clone())])
}

const FLOATS: &str = "matrices of float32, or of float64: cast first";

/// The extents of a stack of matrices, and theirs.
fn matrices<'a>(op: &'static str, a: &'a Meta) -> Result<(&'a [usize], [usize; 2])> {
    match &a.shape[..] {
        [stack @ .., m, n] => Ok((stack, [*m, *n])),
        _ => Err(Error::shape(op, [&a.shape], "matrices in the last two dimensions")),
    }
}

/// `per_product` operations for each triple of an element, and a row or column.
fn cubic(io: &[&Meta], per_product: u64) -> Cost {
    let cost = Cost::elementwise(io, per_product);
    let length = io[0].shape.last().copied().unwrap_or(1) as u64;
    Cost { flops: cost.flops.saturating_mul(length), ..cost }
}
