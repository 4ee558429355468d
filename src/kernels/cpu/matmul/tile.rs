//! Small matrix products on one thread, in the type of the sums.
#![allow(unsafe_code)]

use half::{bf16, f16};

use crate::dtype::Element;
use crate::kernels::cpu::matmul::row;
use crate::kernels::cpu::simd::wide::{self, Float};

/// A matrix in memory: the address of its first element, and the steps from row to row and from
/// column to column, in elements.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<P> {
    /// The address of the first element.
    pub at: P,
    /// The step from row to row.
    pub row: isize,
    /// The step from column to column.
    pub column: isize,
}

impl<T> Matrix<*const T> {
    /// A contiguous row-major matrix.
    pub fn of(elements: &[T], columns: usize) -> Self {
        Matrix { at: elements.as_ptr(), row: columns as isize, column: 1 }
    }
}

impl<T> Matrix<*mut T> {
    /// A contiguous row-major matrix.
    pub fn of_mut(elements: &mut [T], columns: usize) -> Self {
        Matrix { at: elements.as_mut_ptr(), row: columns as isize, column: 1 }
    }
}

macro_rules! parts {
    ($($kind:tt),*) => {$(
        impl<T> Matrix<*$kind T> {
            /// The matrix from this row and column on.
            pub fn from(self, row: usize, column: usize) -> Self {
                let step = row as isize * self.row + column as isize * self.column;
                Matrix { at: self.at.wrapping_offset(step), ..self }
            }

            /// The matrix transposed.
            pub fn turned(self) -> Self {
                Matrix { at: self.at, row: self.column, column: self.row }
            }

            /// The same memory as elements of another type of the same size.
            pub fn cast<U>(self) -> Matrix<*$kind U> {
                Matrix { at: self.at.cast(), row: self.row, column: self.column }
            }
        }
    )*};
}
parts!(const, mut);

/// A type in which products are summed.
pub trait Sum: Element + PartialOrd {
    /// No value is less.
    const LOWEST: Self;

    /// `c = a b`, or `c += a b` if `add`, for m x k and k x n matrices; `size` is `[m, n, k]`. The
    /// order of additions depends on sizes and strides only. Integers wrap; for them the rows of
    /// `b` and `c` must be contiguous.
    ///
    /// # Safety
    /// All elements of `a` and `b` can be read, those of `c` written (and read if `add`), and `c`
    /// does not overlap the others.
    unsafe fn multiply(
        size: [usize; 3],
        c: Matrix<*mut Self>,
        add: bool,
        a: Matrix<*const Self>,
        b: Matrix<*const Self>,
    );

    /// `rows[i * row.len() + j] += row[j]`; integers wrap.
    fn add_row(rows: &mut [Self], row: &[Self]);
}

macro_rules! float_sums {
    ($($T:ty),*) => {$(
        impl Sum for $T {
            const LOWEST: $T = <$T>::NEG_INFINITY;

            unsafe fn multiply(
                [m, n, k]: [usize; 3],
                c: Matrix<*mut $T>,
                add: bool,
                a: Matrix<*const $T>,
                b: Matrix<*const $T>,
            ) {
                if let Some(product) = row::Product::of([m, n, k], c, a, b) {
                    // SAFETY: by the caller's promise.
                    return unsafe { product.compute(add) };
                }
                // SAFETY: by the caller's promise.
                unsafe {
                    gemm::gemm(
                        m, n, k, c.at, c.column, c.row, add, a.at, a.column, a.row, b.at, b.column,
                        b.row, 1.0, 1.0, false, false, false, gemm::Parallelism::None,
                    );
                }
            }

            fn add_row(rows: &mut [$T], row: &[$T]) {
                for sums in rows.chunks_exact_mut(row.len().max(1)) {
                    sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
                }
            }
        }
    )*};
}
float_sums!(f32, f64);

macro_rules! integer_sums {
    ($($T:ty),*) => {$(
        impl Sum for $T {
            const LOWEST: $T = <$T>::MIN;

            unsafe fn multiply(
                [m, n, k]: [usize; 3],
                c: Matrix<*mut $T>,
                add: bool,
                a: Matrix<*const $T>,
                b: Matrix<*const $T>,
            ) {
                debug_assert!(b.column == 1 && c.column == 1);
                for i in 0..m {
                    // SAFETY: by the caller's promise, row i has n contiguous elements.
                    let sums = unsafe { std::slice::from_raw_parts_mut(c.from(i, 0).at, n) };
                    if !add {
                        sums.fill(0);
                    }
                    for l in 0..k {
                        // SAFETY: as above, for an element of `a` and row l of `b`.
                        let (x, row) = unsafe {
                            (*a.from(i, l).at, std::slice::from_raw_parts(b.from(l, 0).at, n))
                        };
                        for (sum, y) in sums.iter_mut().zip(row) {
                            *sum = sum.wrapping_add(x.wrapping_mul(*y));
                        }
                    }
                }
            }

            fn add_row(rows: &mut [$T], row: &[$T]) {
                for sums in rows.chunks_exact_mut(row.len().max(1)) {
                    sums.iter_mut().zip(row).for_each(|(sum, x)| *sum = sum.wrapping_add(*x));
                }
            }
        }
    )*};
}
integer_sums!(i32, i64, i8, u8);

/// An element type with products.
pub trait Factor: Element {
    /// The type in which the products are summed.
    type Sum: Sum;
    /// Whether products can be computed directly from the elements in memory.
    const IN_PLACE: bool;

    /// The same value.
    fn factor(self) -> Self::Sum;

    /// `to[i]` = the element `i * step` positions after `from`.
    ///
    /// # Safety
    /// All these elements can be read.
    unsafe fn gather(from: *const Self, step: isize, to: &mut [Self::Sum]);

    /// The element `i * step` positions after `to` = `from[i]`, rounded.
    ///
    /// # Safety
    /// All these elements can be written, and nothing else accesses them.
    unsafe fn scatter(from: &[Self::Sum], to: *mut Self, step: isize);
}

macro_rules! float_factors {
    ($($T:ty),*) => {$(
        impl Factor for $T {
            type Sum = <$T as Float>::Wide;
            const IN_PLACE: bool = <$T as Float>::IS_WIDE;
            #[inline(always)]
            fn factor(self) -> Self::Sum {
                self.widen()
            }
            #[inline(always)]
            unsafe fn gather(from: *const $T, step: isize, to: &mut [Self::Sum]) {
                // SAFETY: by the caller's promise.
                unsafe { wide::gather(from, step, to) }
            }
            #[inline(always)]
            unsafe fn scatter(from: &[Self::Sum], to: *mut $T, step: isize) {
                // SAFETY: by the caller's promise.
                unsafe { wide::scatter(from, to, step) }
            }
        }
    )*};
}
float_factors!(f32, f64, f16, bf16);

macro_rules! integer_factors {
    ($($T:ty),*) => {$(
        impl Factor for $T {
            type Sum = $T;
            const IN_PLACE: bool = false;
            #[inline(always)]
            fn factor(self) -> $T {
                self
            }
            #[inline(always)]
            unsafe fn gather(from: *const $T, step: isize, to: &mut [$T]) {
                for (i, to) in to.iter_mut().enumerate() {
                    // SAFETY: by the caller's promise.
                    *to = unsafe { *from.offset(i as isize * step) };
                }
            }
            #[inline(always)]
            unsafe fn scatter(from: &[$T], to: *mut $T, step: isize) {
                for (i, sum) in from.iter().enumerate() {
                    // SAFETY: by the caller's promise.
                    unsafe { *to.offset(i as isize * step) = *sum };
                }
            }
        }
    )*};
}
integer_factors!(i32, i64, i8, u8);

/// Copies a matrix into `to`, row-major, with `columns` elements per row.
///
/// # Safety
/// All elements of the matrix, of `to.len() / columns` rows, can be read.
pub unsafe fn gather_matrix<T: Factor>(from: Matrix<*const T>, columns: usize, to: &mut [T::Sum]) {
    /// The number of rows copied together if the matrix is column-major.
    const ROWS: usize = 16;
    if columns == 0 {
        return;
    }
    if from.column.unsigned_abs() <= from.row.unsigned_abs() {
        for (i, row) in to.chunks_exact_mut(columns).enumerate() {
            // SAFETY: by the caller's promise.
            unsafe { T::gather(from.from(i, 0).at, from.column, row) };
        }
        return;
    }
    for (block, rows) in to.chunks_mut(ROWS * columns).enumerate() {
        for j in 0..columns {
            let column = from.from(block * ROWS, j);
            for (i, to) in rows[j..].iter_mut().step_by(columns).enumerate() {
                // SAFETY: by the caller's promise.
                *to = unsafe { *column.from(i, 0).at }.factor();
            }
        }
    }
}
