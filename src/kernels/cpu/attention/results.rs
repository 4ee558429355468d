//! Writing the gradients.
#![allow(unsafe_code)]

use super::blocks::Range;
use super::heads::{Heads, Matrices};
use crate::kernels::Io;
use crate::kernels::cpu::matmul::tile::Factor;
use crate::kernels::cpu::simd::wide::Wide;

/// Where gradients go.
pub struct Results<T: Factor> {
    /// Sizes and numbers of heads.
    pub heads: Heads,
    /// What the sums for queries and keys are multiplied by.
    pub scale: T::Sum,
    /// The matrices of dq, dk and dv, and of all scores if their gradient is wanted.
    pub outputs: Vec<Matrices>,
}

impl<T: Factor<Sum: Wide + Factor<Sum = T::Sum>>> Results<T> {
    /// Writes the gradients of scores, if they are wanted: those of a block, keys x queries, or 0.
    ///
    /// # Safety
    /// `io` is what this was made for, and nothing else accesses what is written.
    pub unsafe fn write_scores(
        &self,
        io: &Io,
        head: usize,
        [(row, width), (first, keys)]: [Range; 2],
        slopes: Option<&[T::Sum]>,
    ) {
        let Some(scores) = self.outputs.get(3) else { return };
        for i in 0..width {
            let to = scores.at::<T::Sum>(io.output::<T::Sum>(3), head, row + i);
            for j in 0..keys {
                let slope = slopes.map_or(T::Sum::ZERO, |slopes| slopes[j * width + i]);
                let step = (first + j) as isize * scores.column;
                // SAFETY: by the caller's promise.
                unsafe { *to.cast_mut().offset(step) = slope };
            }
        }
    }

    /// Writes the gradients of a block of keys and of their values.
    ///
    /// # Safety
    /// As [`Results::write_scores`].
    pub unsafe fn write_keys(
        &self,
        io: &Io,
        shared: usize,
        (first, count): Range,
        [keys, values]: [&mut [T::Sum]; 2],
    ) {
        let [wide, narrow] = self.heads.widths;
        scaled(keys, self.scale);
        // SAFETY: by the caller's promise.
        unsafe {
            self.write(io, 1, shared, first, &keys[..count * wide]);
            self.write(io, 2, shared, first, &values[..count * narrow]);
        }
    }

    /// Writes the gradients of the queries that share keys, the total of these sums.
    ///
    /// # Safety
    /// As [`Results::write_scores`].
    pub unsafe fn write_queries(&self, io: &Io, shared: usize, sums: &mut [&mut [T::Sum]]) {
        let heads = &self.heads;
        let Some((total, others)) = sums.split_first_mut() else { return };
        for other in others {
            total.iter_mut().zip(&**other).for_each(|(total, x)| *total = *total + *x);
        }
        scaled(total, self.scale);
        let matrix = heads.lengths[0] * heads.widths[0];
        for (member, rows) in total.chunks_exact(matrix.max(1)).enumerate() {
            let head = shared * heads.group() + member;
            // SAFETY: by the caller's promise.
            unsafe { self.write(io, 0, head, 0, rows) };
        }
    }

    /// Writes rows of an output's matrix.
    ///
    /// # Safety
    /// As [`Results::write_scores`].
    unsafe fn write(&self, io: &Io, output: usize, matrix: usize, first: usize, rows: &[T::Sum]) {
        let (to, columns) = (&self.outputs[output], self.heads.widths[usize::from(output == 2)]);
        for (i, row) in rows.chunks_exact(columns.max(1)).enumerate() {
            let at = to.at::<T>(io.output::<T>(output), matrix, first + i).cast_mut();
            // SAFETY: by the caller's promise.
            unsafe { T::scatter(row, at, to.column) };
        }
    }
}

/// Multiplies numbers by a factor.
fn scaled<W: Wide>(numbers: &mut [W], factor: W) {
    numbers.iter_mut().for_each(|x| *x = *x * factor);
}
