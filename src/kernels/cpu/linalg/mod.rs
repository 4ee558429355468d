//! Linear algebra on stacks of matrices. One thread computes each matrix, so the bits
//! do not depend on how many there are.
#![allow(unsafe_code)]

mod columns;
mod factor;
mod jacobi;
mod tridiagonal;

use std::sync::Arc;

use nalgebra::DMatrix;

use crate::device::team;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernels::cpu::not_float;
use crate::kernels::cpu::strided::walk::{Walk, dims};
use crate::kernels::{Io, Kernel, Width, kernel};
use crate::ops::linalg::{Linalg, Solve, TriangularSolve};
use crate::ops::{Family, Meta};
use crate::shape::Shape;
use factor::{Real, Refusal};

/// Prepares A -> what the function says.
///
/// # Errors
/// [`Error::DType`] for anything but float32 and float64.
pub fn linalg(op: &Linalg, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let f = op.f;
    match io[0].dtype {
        DType::Float32 => stacked::<f32, 1>(op.name(), io, width, move |[a]| factor::of(f, a)),
        DType::Float64 => stacked::<f64, 1>(op.name(), io, width, move |[a]| factor::of(f, a)),
        _ => not_float(op.name(), io[0]),
    }
}

/// Prepares (A, B) -> X.
///
/// # Errors
/// As [`linalg`].
pub fn solve(op: &Solve, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    match io[0].dtype {
        DType::Float32 => stacked::<f32, 2>(op.name(), io, width, factor::solution),
        DType::Float64 => stacked::<f64, 2>(op.name(), io, width, factor::solution),
        _ => not_float(op.name(), io[0]),
    }
}

/// Prepares (A, B) -> X for triangular matrices.
///
/// # Errors
/// As [`linalg`].
pub fn triangular(op: &TriangularSolve, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let TriangularSolve { lower, unit } = *op;
    match io[0].dtype {
        DType::Float32 => {
            stacked::<f32, 2>(op.name(), io, width, move |ab| factor::triangular(ab, lower, unit))
        }
        DType::Float64 => {
            stacked::<f64, 2>(op.name(), io, width, move |ab| factor::triangular(ab, lower, unit))
        }
        _ => not_float(op.name(), io[0]),
    }
}

/// A kernel that computes the outputs, matrix by matrix, of `N` inputs.
fn stacked<T: Real, const N: usize>(
    name: &'static str,
    io: &[&Meta],
    Width(width): Width,
    compute: impl Fn([DMatrix<T>; N]) -> Result<Vec<DMatrix<T>>, Refusal> + Send + Sync + 'static,
) -> Result<Arc<dyn Kernel>> {
    let inputs: [Stack; N] = std::array::from_fn(|i| Stack::new(io[i]));
    let batch: Shape = io[0].shape[..io[0].shape.rank() - 2].iter().copied().collect();
    let count = batch.iter().product::<usize>();
    Ok(kernel(0, move |io| {
        let one = |n: usize| {
            let given = std::array::from_fn(|i| inputs[i].matrix::<T>(io, i, n));
            compute(given).map_err(|refusal| refusal.error(name, &batch, n))
        };
        // Nothing is written unless every matrix has a result.
        let made: Vec<Vec<DMatrix<T>>> = match width {
            1 => (0..count).map(one).collect::<Result<_>>()?,
            _ => team::map(count, one)?.into_iter().collect::<Result<_>>()?,
        };
        for (n, outputs) in made.iter().enumerate() {
            outputs.iter().enumerate().for_each(|(o, matrix)| put(io, o, n, matrix));
        }
        Ok(())
    }))
}

/// A stack of matrices in memory.
struct Stack {
    batch: Walk<1>,
    extents: [usize; 2],
    strides: [isize; 2],
}

impl Stack {
    fn new(meta: &Meta) -> Stack {
        let all = dims([meta]);
        let (batch, last) = all.split_at(all.len() - 2);
        Stack {
            batch: Walk::new(batch.iter().copied()),
            extents: [last[0].extent, last[1].extent],
            strides: [last[0].strides[0], last[1].strides[0]],
        }
    }

    /// Matrix `n` of input `input`.
    fn matrix<T: Real>(&self, io: &Io, input: usize, n: usize) -> DMatrix<T> {
        let ([rows, columns], [down, right]) = (self.extents, self.strides);
        let [at] = self.batch.offsets(n..n + 1).next().expect("a matrix of the stack");
        let from = io.input::<T>(input).wrapping_offset(at);
        DMatrix::from_fn(rows, columns, |i, j| {
            // SAFETY: the element is one of the input.
            unsafe { *from.offset(i as isize * down + j as isize * right) }
        })
    }
}

/// Writes matrix `n` of a row-major output.
fn put<T: Real>(io: &Io, output: usize, n: usize, matrix: &DMatrix<T>) {
    let rows = matrix.transpose();
    let to = io.output::<T>(output).wrapping_add(n * rows.len());
    // SAFETY: the output has a matrix of this size for each of the stack.
    unsafe { to.copy_from_nonoverlapping(rows.as_ptr(), rows.len()) };
}

impl Refusal {
    /// The error for matrix `n` of a stack.
    fn error(self, name: &'static str, stack: &Shape, n: usize) -> Error {
        let mut rest = n;
        let mut index: Vec<usize> = Vec::with_capacity(stack.rank());
        for &extent in stack.iter().rev() {
            index.push(rest % extent);
            rest /= extent;
        }
        index.reverse();
        let place = match &index[..] {
            [] => String::new(),
            [one] => format!(" at index {one}"),
            _ => format!(" at index {index:?}"),
        };
        Error::value(name, format!("{}{place}", self.got), self.want)
    }
}
