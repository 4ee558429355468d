//! What is computed of one matrix.

use nalgebra::linalg::{Cholesky, LU, QR};
use nalgebra::{DMatrix, DVector, Dyn, RealField};

use super::jacobi::{self, Factors};
use super::tridiagonal;
use crate::dtype::Element;
use crate::ops::linalg::LinalgFn;

/// float32 or float64.
pub trait Real: RealField + Element {}

impl Real for f32 {}
impl Real for f64 {}

/// Why a matrix has no result.
pub struct Refusal {
    /// What the matrix is.
    pub got: &'static str,
    /// What it had to be.
    pub want: &'static str,
}

const INDEFINITE: Refusal =
    Refusal { got: "a matrix that is not positive definite", want: "positive definite matrices" };
const SINGULAR: Refusal =
    Refusal { got: "a singular matrix", want: "matrices that have an inverse" };
const NOT_FINITE: Refusal =
    Refusal { got: "a matrix with NaN or infinities", want: "matrices of finite numbers" };
const ENDLESS: Refusal =
    Refusal { got: "a matrix for which iterations do not converge", want: "another matrix" };

/// The outputs of a function of a matrix; vectors are columns, and numbers matrices of one element.
///
/// # Errors
/// A matrix for which it has none.
pub fn of<T: Real>(f: LinalgFn, a: DMatrix<T>) -> Result<Vec<DMatrix<T>>, Refusal> {
    match f {
        LinalgFn::Cholesky => Ok(vec![Cholesky::new(a).ok_or(INDEFINITE)?.l()]),
        LinalgFn::Det => Ok(vec![number(LU::new(a).determinant())]),
        LinalgFn::Slogdet => Ok(slogdet(&LU::new(a)).map(number).into()),
        LinalgFn::Inv => Ok(vec![LU::new(a).try_inverse().ok_or(SINGULAR)?]),
        LinalgFn::Qr => Ok(qr(a)),
        LinalgFn::Svd => singular(a),
        LinalgFn::Eigh => eigh(a),
    }
}

/// X with A X = B.
///
/// # Errors
/// A singular A.
pub fn solution<T: Real>([a, b]: [DMatrix<T>; 2]) -> Result<Vec<DMatrix<T>>, Refusal> {
    if a.is_empty() {
        return Ok(vec![b]);
    }
    Ok(vec![LU::new(a).solve(&b).ok_or(SINGULAR)?])
}

/// X with A X = B, of one triangle of A.
///
/// # Errors
/// A zero on the diagonal.
pub fn triangular<T: Real>(
    [mut a, b]: [DMatrix<T>; 2],
    lower: bool,
    unit: bool,
) -> Result<Vec<DMatrix<T>>, Refusal> {
    if unit {
        a.fill_diagonal(T::one());
    }
    let x = if lower { a.solve_lower_triangular(&b) } else { a.solve_upper_triangular(&b) };
    Ok(vec![x.ok_or(SINGULAR)?])
}

fn number<T: Real>(value: T) -> DMatrix<T> {
    DMatrix::from_element(1, 1, value)
}

fn column(values: &DVector<f64>) -> DMatrix<f64> {
    DMatrix::from_column_slice(values.len(), 1, values.as_slice())
}

fn rounded<T: Real>(a: DMatrix<f64>) -> DMatrix<T> {
    a.map(<T as Element>::from_f64)
}

/// The sign of the determinant, and the logarithm of its magnitude.
fn slogdet<T: Real>(lu: &LU<T, Dyn, Dyn>) -> [T; 2] {
    let diagonal: DVector<T> = lu.u().diagonal();
    let sign = diagonal.iter().fold(lu.p().determinant::<T>(), |sign, &d| match d {
        zero if zero.is_zero() => T::zero(),
        d if d < T::zero() => -sign,
        d if d > T::zero() => sign,
        nan => nan,
    });
    [sign, diagonal.iter().fold(T::zero(), |sum, d| sum + d.abs().ln())]
}

fn check_finite<T: Real>(a: &DMatrix<T>) -> Result<(), Refusal> {
    if a.iter().all(|x| x.is_finite()) { Ok(()) } else { Err(NOT_FINITE) }
}

/// Q and R, computed in float64: the squares of columns that are small next to others would
/// underflow in float32.
fn qr<T: Real>(a: DMatrix<T>) -> Vec<DMatrix<T>> {
    let a = a.map(|x| x.to_f64());
    let scale = jacobi::scale(&a);
    let (q, r) = QR::new(a / scale).unpack();
    vec![rounded(q), rounded(r * scale)]
}

/// U, the singular values and V^T, computed in float64.
fn singular<T: Real>(a: DMatrix<T>) -> Result<Vec<DMatrix<T>>, Refusal> {
    check_finite(&a)?;
    let (m, n) = a.shape();
    let few = m.min(n);
    if few == 0 {
        return Ok(vec![DMatrix::zeros(m, 0), DMatrix::zeros(0, 1), DMatrix::zeros(0, n)]);
    }
    let Factors { u, s, v } = jacobi::svd(a.map(|x| x.to_f64())).ok_or(ENDLESS)?;
    Ok(vec![rounded(u), rounded(column(&s)), rounded(v.transpose())])
}

/// The eigenvalues in ascending order and the eigenvectors, computed in float64.
fn eigh<T: Real>(a: DMatrix<T>) -> Result<Vec<DMatrix<T>>, Refusal> {
    // Of the upper triangle nothing is read, so it may be anything.
    let lower = a.lower_triangle();
    check_finite(&lower)?;
    let mirrored = |i: usize, j: usize| lower[(i.max(j), i.min(j))].to_f64();
    let whole = DMatrix::from_fn(lower.nrows(), lower.nrows(), mirrored);
    let (values, vectors) = tridiagonal::eigh(whole).ok_or(ENDLESS)?;
    Ok(vec![rounded(column(&values)), rounded(vectors)])
}
