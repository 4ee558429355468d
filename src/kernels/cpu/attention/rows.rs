//! Products of a few rows with many, without tiles.
#![allow(unsafe_code)]

use crate::kernels::cpu::simd::dot::dot;
use crate::kernels::cpu::simd::isa::{Body, Level};
use crate::kernels::cpu::simd::wide::Wide;

/// Rows in memory: the address of the first one, the step from one to the next, and how many there
/// are. Each is contiguous.
#[derive(Clone, Copy)]
pub struct Rows<W> {
    at: *const W,
    step: isize,
    count: usize,
    columns: usize,
}

impl<W> Rows<W> {
    /// # Safety
    /// The rows can be read as long as the value is in use.
    pub unsafe fn new(at: *const W, step: isize, [count, columns]: [usize; 2]) -> Self {
        Rows { at, step, count, columns }
    }

    #[inline(always)]
    fn get(&self, i: usize) -> &[W] {
        let at = self.at.wrapping_offset(i as isize * self.step);
        // SAFETY: by the promise to `new`.
        unsafe { std::slice::from_raw_parts(at, self.columns) }
    }
}

/// `scores[i * keys.count + j]` = the product of query i and key j.
pub struct Scores<'a, W> {
    /// Contiguous rows.
    pub queries: &'a [W],
    /// The keys.
    pub keys: Rows<W>,
    /// The results.
    pub scores: &'a mut [W],
}

impl<W: Wide> Body for Scores<'_, W> {
    type Output = ();

    #[inline(always)]
    fn run<L: Level>(self) {
        let (count, columns) = (self.keys.count, self.keys.columns);
        for j in 0..count {
            let key = self.keys.get(j);
            for (i, scores) in self.scores.chunks_exact_mut(count).enumerate() {
                scores[j] = dot::<L, W>(&self.queries[i * columns..(i + 1) * columns], key);
            }
        }
    }
}

/// `values[i]` = the sum of the rows, weighed by row i of the weights.
pub struct Sums<'a, W> {
    /// A row of weights for each result.
    pub weights: &'a [W],
    /// What is weighed.
    pub rows: Rows<W>,
    /// The results, contiguous rows.
    pub values: &'a mut [W],
}

impl<W: Wide> Body for Sums<'_, W> {
    type Output = ();

    #[inline(always)]
    fn run<L: Level>(self) {
        let (count, columns) = (self.rows.count, self.rows.columns.max(1));
        self.values.fill(W::ZERO);
        for j in 0..count {
            let row = self.rows.get(j);
            for (i, values) in self.values.chunks_exact_mut(columns).enumerate() {
                let weight = self.weights[i * count + j];
                values.iter_mut().zip(row).for_each(|(sum, x)| *sum = weight.mad::<L>(*x, *sum));
            }
        }
    }
}
