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

impl<T: Wide> Rows<'_, T> {
    /// Adds `N` rows from row `l` on, each times its element of `a`.
    #[inline(always)]
    fn add<L: Level, const N: usize>(&mut self, l: usize) {
        let n = self.sums.len();
        // SAFETY: the caller of `multiply` vouches for the elements of rows up to k.
        let (x, rows): ([T; N], [&[T]; N]) = unsafe {
            let row = |i: usize| std::slice::from_raw_parts(self.b.from(l + i, 0).at, n);
            (std::array::from_fn(|i| *self.a.from(0, l + i).at), std::array::from_fn(row))
        };
        // Plain loops: what is passed to iterators would be compiled for the baseline.
        for (j, sum) in self.sums.iter_mut().enumerate() {
            let mut total = *sum;
            for (x, row) in x.iter().zip(&rows) {
                total = x.mad::<L>(row[j], total);
            }
            *sum = total;
        }
    }
}

impl<T: Wide> Body for Rows<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<L: Level>(mut self) {
        let whole = self.k - self.k % ROWS;
        for l in (0..whole).step_by(ROWS) {
            self.add::<L, ROWS>(l);
        }
        for l in whole..self.k {
            self.add::<L, 1>(l);
        }
    }
}
