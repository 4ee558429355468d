//! Eigenvalues of symmetric matrices in float64: a reduction to three diagonals, and QL steps with
//! implicit shifts (Bowdler, Martin, Reinsch and Wilkinson 1968), which unlike nalgebra's end at
//! zeros of both kinds.

use std::ops::Range;

use nalgebra::linalg::SymmetricTridiagonal;
use nalgebra::{DMatrix, DVector};

use super::columns::{Rotation, pair, picked};
use super::jacobi::scale;
use crate::kernels::cpu::simd::isa::Isa;

/// Steps for each eigenvalue, on average, before it is given up: 2 are usual.
const STEPS: usize = 30;

/// The eigenvalues of a symmetric matrix of finite numbers in ascending order, and the eigenvectors
/// as columns; None if steps do not converge.
pub fn eigh(a: DMatrix<f64>) -> Option<(DVector<f64>, DMatrix<f64>)> {
    let (n, scale) = (a.nrows(), scale(&a));
    let mut matrix = Tridiagonal::new(a / scale);
    let mut steps = 0..STEPS * n;
    for l in 0..n {
        matrix.settle(l, &mut steps)?;
    }
    let values = matrix.diagonal.iter().map(|value| value * scale);
    let mut order: Vec<(usize, f64)> = values.enumerate().collect();
    order.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    let values = DVector::from_iterator(n, order.iter().map(|&(_, value)| value));
    Some((values, picked(&matrix.vectors, &order)))
}

/// V T V^T with a matrix T of three diagonals.
struct Tridiagonal {
    diagonal: Vec<f64>,
    /// The element beside each of the diagonal, and a 0 after the last.
    beside: Vec<f64>,
    vectors: DMatrix<f64>,
    /// The largest sum of an element of the diagonal and the one beside it, so far: what is small
    /// next to it is zero.
    size: f64,
}

impl Tridiagonal {
    fn new(a: DMatrix<f64>) -> Tridiagonal {
        if a.nrows() < 2 {
            let vectors = DMatrix::identity(a.nrows(), a.nrows());
            let diagonal = a.as_slice().to_vec();
            return Tridiagonal { diagonal, beside: vec![0.0], vectors, size: 0.0 };
        }
        let (vectors, diagonal, beside) = SymmetricTridiagonal::new(a).unpack();
        let beside = beside.iter().copied().chain([0.0]).collect();
        Tridiagonal { diagonal: diagonal.as_slice().to_vec(), beside, vectors, size: 0.0 }
    }

    /// Steps until element `l` of the diagonal is an eigenvalue; those before it are. None if no
    /// steps are left.
    fn settle(&mut self, l: usize, steps: &mut Range<usize>) -> Option<()> {
        self.size = self.size.max(self.diagonal[l].abs() + self.beside[l].abs());
        steps.find(|_| {
            let end = self.end(l);
            if end > l {
                self.step(l, end);
            }
            end == l
        })?;
        Some(())
    }

    /// The last row of the block that begins at row `l`: nothing but zeros is beside it.
    fn end(&self, l: usize) -> usize {
        let (last, zero) = (self.diagonal.len() - 1, f64::EPSILON * self.size);
        (l..last).find(|&m| self.beside[m].abs() <= zero.max(f64::MIN_POSITIVE)).unwrap_or(last)
    }

    /// The shift for the block from row `l` on: the eigenvalue of its first two rows that is closer
    /// to the first element.
    fn shift(&self, l: usize) -> f64 {
        let (d, e) = (&self.diagonal, self.beside[l]);
        let half = (d[l + 1] - d[l]) / (2.0 * e);
        d[l] - e / (half + half.hypot(1.0).copysign(half))
    }

    /// One step for the block of rows `l..=end`: rotations of neighbours, from the last pair on,
    /// drive what is beside element `l` to zero.
    fn step(&mut self, l: usize, end: usize) {
        let isa = Isa::active();
        let mut bulge = self.diagonal[end] - self.shift(l);
        // Of the last element nothing has been rotated away: it counts as a whole in both.
        let (mut by, mut moved) = (Rotation { cosine: 1.0, sine: 1.0 }, 0.0);
        for i in (l..end).rev() {
            let (across, along) = (by.sine * self.beside[i], by.cosine * self.beside[i]);
            let length = across.hypot(bulge);
            self.beside[i + 1] = length;
            if length == 0.0 {
                // The block falls apart here.
                self.diagonal[i + 1] -= moved;
                self.beside[end] = 0.0;
                return;
            }
            by = Rotation { cosine: bulge / length, sine: across / length };
            let rest = self.diagonal[i + 1] - moved;
            let turned = (self.diagonal[i] - rest) * by.sine + 2.0 * by.cosine * along;
            moved = by.sine * turned;
            self.diagonal[i + 1] = rest + moved;
            bulge = by.cosine * turned - along;
            pair(&mut self.vectors, i, i + 1).rotate(isa, by);
        }
        self.diagonal[l] -= moved;
        self.beside[l] = bulge;
        self.beside[end] = 0.0;
    }
}
