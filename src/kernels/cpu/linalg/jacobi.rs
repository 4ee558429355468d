//! Singular values by rotations of pairs of columns (Hestenes 1958; Demmel and Veselic 1992), in
//! float64, of a matrix that two QR factorisations have made all but diagonal (Drmac and Veselic
//! 2008). It takes longer than a reduction to two diagonals, but nalgebra's results after one are
//! wrong, or NaN, for some matrices of deficient rank.

use nalgebra::linalg::{ColPivQR, QR};
use nalgebra::{DMatrix, DVector};

use super::columns::{Rotation, pair, picked};
use crate::kernels::cpu::simd::isa::Isa;

/// Passes over all pairs before it is given up: 5 to 12 are usual.
const SWEEPS: usize = 60;
/// Fewer columns than this take less time as they are.
const FEW: usize = 32;
/// Columns shorter than this count as zeros, next to a longest one of 1 or more: their squares
/// would underflow, and rounding errors keep them from becoming orthogonal.
const SHORTEST: f64 = 1e-140;

/// Factors U S V^T of a matrix.
pub struct Factors {
    /// Orthonormal columns.
    pub u: DMatrix<f64>,
    /// The singular values, in descending order.
    pub s: DVector<f64>,
    /// Orthonormal columns.
    pub v: DMatrix<f64>,
}

/// The factors of a matrix of finite numbers; None if rotations do not converge.
pub fn svd(a: DMatrix<f64>) -> Option<Factors> {
    if a.nrows() < a.ncols() {
        let Factors { u, s, v } = svd(a.transpose())?;
        return Some(Factors { u: v, s, v: u });
    }
    let scale = scale(&a);
    let (left, r, order) = ColPivQR::new(a / scale).unpack();
    let Factors { u, s, mut v } = if r.ncols() < FEW { factors(r)? } else { prepared(r)? };
    order.inv_permute_rows(&mut v);
    Some(Factors { u: left * u, s: s * scale, v })
}

/// The factors of a square matrix that is made all but diagonal first.
fn prepared(r: DMatrix<f64>) -> Option<Factors> {
    let (right, r) = QR::new(r.transpose()).unpack();
    let Factors { u, s, v } = factors(r.transpose())?;
    Some(Factors { u, s, v: right * v })
}

/// What elements are divided by, so that squares neither overflow nor underflow.
pub fn scale(a: &DMatrix<f64>) -> f64 {
    let most = a.amax();
    if most > 0.0 { most } else { 1.0 }
}

/// The factors of a square matrix.
fn factors(mut w: DMatrix<f64>) -> Option<Factors> {
    let n = w.ncols();
    let mut v = DMatrix::identity(n, n);
    (0..SWEEPS).find(|_| !rotate_all(&mut w, &mut v))?;
    let size = |norm: f64| if norm > SHORTEST { norm } else { 0.0 };
    let sizes = w.column_iter().map(|w| size(w.norm()));
    let mut order: Vec<(usize, f64)> = sizes.enumerate().collect();
    order.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    let mut u = picked(&w, &order);
    for (mut column, &(_, size)) in u.column_iter_mut().zip(&order) {
        column *= if size > 0.0 { size.recip() } else { 0.0 };
    }
    // The columns of singular values that are 0 become any that complete the others.
    let is_complete = order.iter().all(|&(_, size)| size > 0.0);
    let u = if is_complete { u } else { QR::new(u).q() };
    let s = DVector::from_iterator(n, order.iter().map(|&(_, size)| size));
    Some(Factors { u, s, v: picked(&v, &order) })
}

/// Makes each pair of columns of W orthogonal in turn, and rotates those of V alike; whether any
/// was not.
fn rotate_all(w: &mut DMatrix<f64>, v: &mut DMatrix<f64>) -> bool {
    let (n, isa, mut any) = (w.ncols(), Isa::active(), false);
    let tolerance = f64::EPSILON * (4.0 + (n as f64).sqrt());
    let mut squares: Vec<f64> = w.column_iter().map(|column| column.norm_squared()).collect();
    for p in 0..n {
        for q in p + 1..n {
            let mut columns = pair(w, p, q);
            let (product, [a, b]) = (columns.product(isa), [squares[p], squares[q]]);
            let are_long = a.min(b) > SHORTEST * SHORTEST;
            if are_long && product.abs() > tolerance * a.sqrt() * b.sqrt() {
                let (turn, tangent) = orthogonal(a, b, product);
                columns.rotate(isa, turn);
                pair(v, p, q).rotate(isa, turn);
                squares[p] -= tangent * product;
                squares[q] += tangent * product;
                any = true;
            }
        }
    }
    any
}

/// The rotation that makes columns of these squared lengths and this product orthogonal, and the
/// tangent of its angle.
fn orthogonal(a: f64, b: f64, product: f64) -> (Rotation, f64) {
    let zeta = (b - a) / (2.0 * product);
    let tangent = 1f64.copysign(zeta) / (zeta.abs() + zeta.hypot(1.0));
    let cosine = 1.0 / tangent.hypot(1.0);
    (Rotation { cosine, sine: cosine * tangent }, tangent)
}
