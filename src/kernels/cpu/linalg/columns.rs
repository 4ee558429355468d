//! Pairs of columns of a matrix in float64.

use nalgebra::DMatrix;

use crate::kernels::cpu::simd::dot::Dot;
use crate::kernels::cpu::simd::isa::{self, Body, Isa, Level};

/// Two columns of a matrix.
pub struct Pair<'a>(&'a mut [f64], &'a mut [f64]);

/// Columns p and q, of which p comes first.
pub fn pair(matrix: &mut DMatrix<f64>, p: usize, q: usize) -> Pair<'_> {
    let n = matrix.nrows();
    let (left, right) = matrix.as_mut_slice().split_at_mut(q * n);
    Pair(&mut left[p * n..][..n], &mut right[..n])
}

/// The columns in this order, each with a number that it is ordered by.
pub fn picked(columns: &DMatrix<f64>, order: &[(usize, f64)]) -> DMatrix<f64> {
    DMatrix::from_fn(columns.nrows(), order.len(), |i, j| columns[(i, order[j].0)])
}

/// A rotation of two columns.
#[derive(Clone, Copy)]
pub struct Rotation {
    /// The cosine of its angle.
    pub cosine: f64,
    /// The sine of its angle.
    pub sine: f64,
}

impl Pair<'_> {
    /// The sum of the products of their elements.
    pub fn product(&self, isa: Isa) -> f64 {
        isa::run(isa, Dot(&*self.0, &*self.1))
    }

    /// Rotates them.
    pub fn rotate(&mut self, isa: Isa, by: Rotation) {
        isa::run(isa, Rotate(self.0, self.1, by));
    }
}

struct Rotate<'a>(&'a mut [f64], &'a mut [f64], Rotation);

impl Body for Rotate<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Level>(self) {
        let Rotate(xs, ys, Rotation { cosine, sine }) = self;
        for (x, y) in xs.iter_mut().zip(ys) {
            (*x, *y) = (cosine * *x - sine * *y, sine * *x + cosine * *y);
        }
    }
}
