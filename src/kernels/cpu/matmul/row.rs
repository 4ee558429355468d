//! One row times a matrix, which is read once from its first row to its last: the speed of memory
//! is all that counts.
#![allow(unsafe_code)]

use crate::kernels::cpu::matmul::tile::Matrix;
use crate::kernels::cpu::simd::isa::{Body, Isa, Level, run};
use crate::kernels::cpu::simd::wide::Wide;

/// The fewest columns for which this is worth it.
const FEWEST: usize = 32;
/// How many rows of the matrix are read side by side.
const ROWS: usize = 4;

/// Whether `a b` is such a product: one row, and rows of `b` and `c` that are contiguous.
pub fn fits<T>([m, n, _]: [usize; 3], c: Matrix<*mut T>, b: Matrix<*const T>) -> bool {
    m == 1 && n >= FEWEST && b.column == 1 && c.column == 1
}

/// `c = a b`, or `c += a b` if `add`; products are added in the order of the rows of `b`.
///
/// # Safety
/// The product is one that [`fits`], all elements can be accessed, and `c` does not overlap the
/// others.
pub unsafe fn multiply<T: Wide>(
    [_, n, k]: [usize; 3],
    c: Matrix<*mut T>,
    add: bool,
    a: Matrix<*const T>,
    b: Matrix<*const T>,
) {
    // SAFETY: by the caller's promise.
    let sums = unsafe { std::slice::from_raw_parts_mut(c.at, n) };
    if !add {
        sums.fill(T::default());
    }
    run(Isa::active(), Rows { sums, a, b, k });
}

struct Rows<'a, T> {
    sums: &'a mut [T],
    a: Matrix<*const T>,
    b: Matrix<*const T>,
    k: usize,
}

impl<'a, T: Wide> Rows<'a, T> {
    /// Row `l` of the matrix, and its factor.
    #[inline(always)]
    fn row(&self, l: usize) -> (T, &'a [T]) {
        debug_assert!(l < self.k);
        // SAFETY: the caller of `multiply` vouches for the elements of all rows.
        unsafe {
            let row = std::slice::from_raw_parts(self.b.from(l, 0).at, self.sums.len());
            (*self.a.from(0, l).at, row)
        }
    }
}

impl<T: Wide> Body for Rows<'_, T> {
    type Output = ();

    /// Four rows at a time, so that sums are loaded and stored a quarter as often. They are named
    /// one by one, since arrays of rows would not be vectorised.
    #[inline(always)]
    fn run<L: Level>(self) {
        let (n, whole) = (self.sums.len(), self.k - self.k % ROWS);
        for l in (0..whole).step_by(ROWS) {
            let [(x0, row0), (x1, row1)] = [self.row(l), self.row(l + 1)];
            let [(x2, row2), (x3, row3)] = [self.row(l + 2), self.row(l + 3)];
            for j in 0..n {
                let sum = x1.mad::<L>(row1[j], x0.mad::<L>(row0[j], self.sums[j]));
                self.sums[j] = x3.mad::<L>(row3[j], x2.mad::<L>(row2[j], sum));
            }
        }
        for l in whole..self.k {
            let (x, row) = self.row(l);
            for (sum, b) in self.sums.iter_mut().zip(row) {
                *sum = x.mad::<L>(*b, *sum);
            }
        }
    }
}
