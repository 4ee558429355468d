//! One row times a matrix, or a matrix times one column, which is the same transposed. The matrix is
//! read once, by its rows or by its columns, as it lies in memory, whose speed is all that counts.
#![allow(unsafe_code)]

use crate::kernels::cpu::matmul::matrices::Matrices;
use crate::kernels::cpu::matmul::tile::Matrix;
use crate::kernels::cpu::simd::isa::{Body, Isa, Level, run};
use crate::kernels::cpu::simd::wide::Wide;

/// The fewest columns for which this is worth it.
const FEWEST: usize = 32;
/// How many rows of the matrix are read side by side.
const ROWS: usize = 4;
/// How many sums the products of a column are added to in turn.
const LANES: usize = 32;

/// A product `c = a b` of one row `a`; `n` columns are sums of `k` products each.
pub struct Product<T> {
    n: usize,
    k: usize,
    c: Matrix<*mut T>,
    a: Matrix<*const T>,
    b: Matrix<*const T>,
}

impl<T> Product<T> {
    /// `c = a b` for m x k and k x n matrices, `size` being `[m, n, k]`, if it is such a product.
    pub fn of(
        [m, n, k]: [usize; 3],
        c: Matrix<*mut T>,
        a: Matrix<*const T>,
        b: Matrix<*const T>,
    ) -> Option<Self> {
        let product = match (m, n) {
            (1, _) => Product { n, k, c, a, b },
            (_, 1) => Product { n: m, k, c: c.turned(), a: b.turned(), b: a.turned() },
            _ => return None,
        };
        (product.has_rows() || product.has_columns()).then_some(product)
    }

    /// Whether the rows of the matrix are contiguous, and worth it.
    fn has_rows(&self) -> bool {
        self.n >= FEWEST && self.b.column == 1 && self.c.column == 1
    }

    /// Whether its columns are.
    fn has_columns(&self) -> bool {
        self.k >= LANES && self.b.row == 1 && self.a.column == 1
    }
}

/// Whether these matrices are a single such product.
pub fn fits(all: &Matrices) -> bool {
    let [a, b, c] = all.steps.map(|[row, column]| (row, column));
    let matrix = |(row, column)| Matrix { at: std::ptr::null::<u8>(), row, column };
    let c = Matrix { at: std::ptr::null_mut(), row: c.0, column: c.1 };
    all.batch.is_empty() && Product::of(all.size, c, matrix(a), matrix(b)).is_some()
}

impl<T: Wide> Product<T> {
    /// Computes it, or adds it to `c` if `add`. Rows are added in their order; of a column the
    /// products are added in turn to sums that are then added in pairs.
    ///
    /// # Safety
    /// All elements can be accessed, and `c` does not overlap the others.
    pub unsafe fn compute(self, add: bool) {
        let Product { n, k, c, a, b } = self;
        if !self.has_rows() {
            // SAFETY: by the caller's promise, as the row is contiguous.
            let a = unsafe { std::slice::from_raw_parts(a.at, k) };
            return run(Isa::active(), Columns { sums: c, add, a, b, n });
        }
        // SAFETY: by the caller's promise.
        let sums = unsafe { std::slice::from_raw_parts_mut(c.at, n) };
        if !add {
            sums.fill(T::default());
        }
        run(Isa::active(), Rows { sums, a, b, k });
    }
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
        // SAFETY: the caller of `compute` vouches for the elements of all rows.
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

struct Columns<'a, T> {
    sums: Matrix<*mut T>,
    add: bool,
    a: &'a [T],
    b: Matrix<*const T>,
    n: usize,
}

impl<'a, T: Wide> Columns<'a, T> {
    /// Column `j` of the matrix.
    #[inline(always)]
    fn column(&self, j: usize) -> &'a [T] {
        debug_assert!(j < self.n);
        // SAFETY: the caller of `compute` vouches for the elements of all columns.
        unsafe { std::slice::from_raw_parts(self.b.from(0, j).at, self.a.len()) }
    }

    /// Sets the sum of column `j`, or adds to it.
    #[inline(always)]
    fn set(&self, j: usize, sum: T) {
        debug_assert!(j < self.n);
        // SAFETY: the caller of `compute` vouches for the elements of the result.
        let to = unsafe { &mut *self.sums.from(0, j).at };
        *to = if self.add { *to + sum } else { sum };
    }
}

impl<T: Wide> Body for Columns<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<L: Level>(self) {
        for j in 0..self.n {
            self.set(j, dot::<T, L>(self.a, self.column(j)));
        }
    }
}

/// The sum of the products of slices of one length.
#[inline(always)]
fn dot<T: Wide, L: Level>(x: &[T], y: &[T]) -> T {
    let mut sums = [T::default(); LANES];
    let ((xs, x), (ys, y)) = (x.as_chunks::<LANES>(), y.as_chunks::<LANES>());
    for (x, y) in xs.iter().zip(ys) {
        for l in 0..LANES {
            sums[l] = x[l].mad::<L>(y[l], sums[l]);
        }
    }
    // Stored once as a whole, sums are as wide as the machine's vectors in the loop above.
    let mut sums = std::hint::black_box(sums);
    for l in 0..x.len().min(y.len()) {
        sums[l] = x[l].mad::<L>(y[l], sums[l]);
    }
    total(sums)
}

/// The sum of all, in pairs.
#[inline(always)]
fn total<T: Wide>(mut sums: [T; LANES]) -> T {
    let mut half = LANES / 2;
    while half > 0 {
        for l in 0..half {
            sums[l] = sums[l] + sums[l + half];
        }
        half /= 2;
    }
    sums[0]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::testing::{assert_near, noise};

    fn some(n: usize, seed: u64) -> Vec<f32> {
        noise(n, seed).into_iter().map(|x| x as f32).collect()
    }

    /// Checks the product of a row, with steps between its elements, and a matrix that lies by its
    /// rows or by its columns, added to what is there or not; and the same transposed.
    fn check(k: usize, n: usize, step: usize, by_columns: bool, adds: bool) {
        let (a, b, start) = (some(k * step + 1, 1), some(k * n, 2), some(n, 3));
        let at = |l: usize, j: usize| if by_columns { j * k + l } else { l * n + j };
        let product = |l: usize, j: usize| f64::from(a[l * step]) * f64::from(b[at(l, j)]);
        let begin = |j: usize| if adds { start[j].into() } else { 0.0 };
        let want: Vec<f64> =
            (0..n).map(|j| (0..k).fold(begin(j), |sum, l| sum + product(l, j))).collect();
        let [row, column] = if by_columns { [1, k] } else { [n, 1] };
        let matrix = Matrix { at: b.as_ptr(), row: row as isize, column: column as isize };
        let row = Matrix { at: a.as_ptr(), row: 1, column: step as isize };
        for is_turned in [false, true] {
            let mut c = start.clone();
            let to = Matrix { at: c.as_mut_ptr(), row: n as isize, column: 1 };
            let product = match is_turned {
                false => Product::of([1, n, k], to, row, matrix),
                true => Product::of([n, 1, k], to.turned(), matrix.turned(), row.turned()),
            };
            // SAFETY: the vectors have these sizes.
            unsafe { product.expect("it is a row and a matrix").compute(adds) };
            let got: Vec<f64> = c.iter().map(|&x| x.into()).collect();
            assert_near(&got, &want, 1e-5, "a row times a matrix");
        }
    }

    /// Every remainder of rows, columns, vectors and sums.
    #[test]
    fn a_row_times_a_matrix() {
        for (k, n) in [(0, 32), (1, 33), (3, 64), (4, 47), (9, 70), (66, 129)] {
            check(k, n, 1, false, false);
            check(k, n, 3, false, true);
        }
        for (k, n) in [(32, 2), (33, 5), (63, 4), (64, 7), (129, 66)] {
            check(k, n, 1, true, false);
            check(k, n, 1, true, true);
        }
    }

    #[test]
    fn other_products_are_none() {
        let (a, b, mut c) = (some(64, 1), some(4096, 2), some(64, 3));
        let (row, to) = (Matrix::of(&a, 64), Matrix::of_mut(&mut c, 64));
        let gaps = Matrix { at: b.as_ptr(), row: 64, column: 2 };
        assert!(Product::of([1, 32, 32], to, row, gaps).is_none());
        assert!(Product::of([2, 32, 32], to, row, Matrix::of(&b, 32)).is_none());
        assert!(Product::of([1, 8, 32], to, row, Matrix::of(&b, 8)).is_none());
    }
}
