//! Products of matrices as libraries describe them: by columns, batch by batch.

use crate::dtype::DType;
#[cfg(any(test, feature = "emulate"))]
use crate::dtype::Element;

/// `y = a b`, or `y += a b`, for each of `batch` pairs of matrices.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Product {
    /// The type of the elements of `a` and `b`; products of those of 16 bits are summed in float32.
    pub dtype: DType,
    /// The type of the elements of `y`: the same, or that of the sums.
    pub result: DType,
    /// Whether `y` is added to, rather than written.
    pub adds: bool,
    /// The rows of `a` and `y`.
    pub rows: usize,
    /// The columns of `b` and `y`.
    pub columns: usize,
    /// The columns of `a`, which are the rows of `b`.
    pub depth: usize,
    /// The number of products.
    pub batch: usize,
    /// Where `a`, `b` and `y` are; `y` is not turned.
    pub operands: [Operand; 3],
}

impl Product {
    /// The rows and columns of an operand: `a`, `b`, `y`.
    pub fn extents(&self, i: usize) -> (usize, usize) {
        [(self.rows, self.depth), (self.depth, self.columns), (self.rows, self.columns)][i]
    }
}

#[cfg(any(test, feature = "emulate"))]
#[allow(unsafe_code)]
impl Product {
    /// Computes it on the host, as a GPU's own kernel does: sums go through the depth in order.
    ///
    /// # Safety
    /// The addresses are those of a call's tensors, which the host reaches.
    pub(super) unsafe fn computed(&self, tensors: &[u64]) {
        let operands = self.operands.map(|operand| tensors[operand.tensor]);
        // SAFETY: by the caller's promise.
        unsafe {
            match self.dtype {
                DType::Float64 => self.summed::<f64, f64>(operands, f64::mul_add),
                DType::Float16 => self.halves::<half::f16>(operands),
                DType::BFloat16 => self.halves::<half::bf16>(operands),
                _ => self.summed::<f32, f32>(operands, fused),
            }
        }
    }

    /// # Safety
    /// As [`Product::computed`], for elements of this type.
    unsafe fn halves<T: Element>(&self, operands: [u64; 3]) {
        // SAFETY: by the caller's promise.
        unsafe {
            match self.result {
                DType::Float32 => self.summed::<T, f32>(operands, fused),
                _ => self.summed::<T, T>(operands, fused),
            }
        }
    }

    /// # Safety
    /// As [`Product::computed`], for elements of these types.
    unsafe fn summed<T: Element, To: Element>(
        &self,
        [a, b, y]: [u64; 3],
        add: impl Fn(f64, f64, f64) -> f64,
    ) {
        let [a, b] = [a, b].map(|at| std::ptr::with_exposed_provenance::<T>(at as usize));
        let y = std::ptr::with_exposed_provenance_mut::<To>(y as usize);
        let place = |i: usize, batch: usize, row: usize, column: usize| {
            let [down, across] = self.operands[i].strides();
            (row * down + column * across) as isize + batch as isize * self.operands[i].step
        };
        for (batch, row) in
            (0..self.batch).flat_map(|batch| (0..self.rows).map(move |r| (batch, r)))
        {
            for column in 0..self.columns {
                // SAFETY: by the caller's promise, the places are elements of the operands.
                unsafe {
                    let sum = (0..self.depth).fold(0.0, |sum, k| {
                        let left = *a.offset(place(0, batch, row, k));
                        let right = *b.offset(place(1, batch, k, column));
                        add(left.to_f64(), right.to_f64(), sum)
                    });
                    let to = y.offset(place(2, batch, row, column));
                    *to = To::from_f64(if self.adds { (*to).to_f64() + sum } else { sum });
                }
            }
        }
    }
}

/// `a b + sum` rounded to float32 once.
#[cfg(any(test, feature = "emulate"))]
fn fused(a: f64, b: f64, sum: f64) -> f64 {
    f64::from((a as f32).mul_add(b as f32, sum as f32))
}

/// How the matrices of one operand lie in memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Operand {
    /// Which of the call's tensors it is.
    pub tensor: usize,
    /// Whether the elements of a row, rather than a column, follow each other.
    pub is_turned: bool,
    /// Elements from one column (turned: row) to the next.
    pub leading: usize,
    /// Elements from one matrix of the batch to the next.
    pub step: isize,
}

impl Operand {
    /// Its matrices transposed.
    pub fn turned(self) -> Operand {
        Operand { is_turned: !self.is_turned, ..self }
    }

    /// Elements from one row to the next, and from one column to the next.
    pub fn strides(&self) -> [usize; 2] {
        if self.is_turned { [self.leading, 1] } else { [1, self.leading] }
    }
}
