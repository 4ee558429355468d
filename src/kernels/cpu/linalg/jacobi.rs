//! Singular values and eigenvalues by rotations of pairs of columns (Hestenes 1958; Demmel and
//! Veselic 1992), in float64. They take longer than a reduction to few diagonals, but nalgebra's
//! results after one are wrong, or NaN, for some matrices of deficient rank.

use nalgebra::linalg::QR;
use nalgebra::{DMatrix, DVector};

/// Passes over all pairs before it is given up: 6 to 12 are usual.
const SWEEPS: usize = 60;
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
    let (q, r) = QR::new(a / scale).unpack();
    let Factors { u, s, v } = factors(r)?;
    Some(Factors { u: q * u, s: s * scale, v })
}

/// The eigenvalues of a symmetric matrix of finite numbers in ascending order, and the eigenvectors
/// as columns; None if rotations do not converge.
pub fn eigh(a: DMatrix<f64>) -> Option<(DVector<f64>, DMatrix<f64>)> {
    let scale = scale(&a);
    let a = a / scale;
    // With this on the diagonal none is negative, and they are the singular values.
    let shift = DMatrix::from_diagonal_element(a.nrows(), a.nrows(), a.norm());
    let Factors { v, .. } = factors(&a + shift)?;
    let image = a * &v;
    let value = |j: usize| v.column(j).dot(&image.column(j)) * scale;
    let mut order: Vec<(usize, f64)> = (0..v.ncols()).map(|j| (j, value(j))).collect();
    order.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    let values = DVector::from_iterator(order.len(), order.iter().map(|&(_, value)| value));
    Some((values, picked(&v, &order)))
}

/// What elements are divided by, so that squares neither overflow nor underflow.
pub fn scale(a: &DMatrix<f64>) -> f64 {
    let most = a.amax();
    if most > 0.0 { most } else { 1.0 }
}

/// The columns in this order.
fn picked(columns: &DMatrix<f64>, order: &[(usize, f64)]) -> DMatrix<f64> {
    DMatrix::from_fn(columns.nrows(), order.len(), |i, j| columns[(i, order[j].0)])
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
    let (n, mut any) = (w.ncols(), false);
    let tolerance = f64::EPSILON * (4.0 + (n as f64).sqrt());
    for p in 0..n {
        for q in p + 1..n {
            let product = w.column(p).dot(&w.column(q));
            let [a, b] = [p, q].map(|i| w.column(i).norm_squared());
            let are_long = a.min(b) > SHORTEST * SHORTEST;
            if are_long && product.abs() > tolerance * a.sqrt() * b.sqrt() {
                let turn = Rotation::new(a, b, product);
                turn.apply(w, p, q);
                turn.apply(v, p, q);
                any = true;
            }
        }
    }
    any
}

/// A rotation of two columns.
#[derive(Clone, Copy)]
struct Rotation {
    cosine: f64,
    sine: f64,
}

impl Rotation {
    /// That which makes columns of these squared lengths and this product orthogonal.
    fn new(a: f64, b: f64, product: f64) -> Rotation {
        let zeta = (b - a) / (2.0 * product);
        let tangent = 1f64.copysign(zeta) / (zeta.abs() + zeta.hypot(1.0));
        let cosine = 1.0 / tangent.hypot(1.0);
        Rotation { cosine, sine: cosine * tangent }
    }

    /// Rotates columns p and q, of which p comes first.
    fn apply(self, columns: &mut DMatrix<f64>, p: usize, q: usize) {
        let Rotation { cosine: c, sine: s } = self;
        let n = columns.nrows();
        let (left, right) = columns.as_mut_slice().split_at_mut(q * n);
        for (x, y) in left[p * n..][..n].iter_mut().zip(&mut right[..n]) {
            (*x, *y) = (c * *x - s * *y, s * *x + c * *y);
        }
    }
}
