//! Products of a few rows with many, without tiles.
#![allow(unsafe_code)]

use crate::kernels::cpu::simd::isa::{Body, Level};
use crate::kernels::cpu::simd::wide::Wide;

/// Sums are split between so many lanes.
const LANES: usize = 16;

/// The sum of the products of two rows.
#[inline(always)]
pub fn dot<L: Level, W: Wide>(a: &[W], b: &[W]) -> W {
    let mut lanes = [W::ZERO; LANES];
    let (whole, others) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let (rest, other) = (whole.remainder(), others.remainder());
    for (a, b) in whole.zip(others) {
        lanes
            .iter_mut()
            .zip(a.iter().zip(b))
            .for_each(|(lane, (a, b))| *lane = a.mad::<L>(*b, *lane));
    }
    for (lane, (a, b)) in lanes.iter_mut().zip(rest.iter().zip(other)) {
        *lane = a.mad::<L>(*b, *lane);
    }
    lanes.iter().fold(W::ZERO, |sum, lane| sum + *lane)
}

/// The dot products of pairs of rows.
pub struct Dot<'a, W>(pub &'a [W], pub &'a [W]);

impl<W: Wide> Body for Dot<'_, W> {
    type Output = W;

    #[inline(always)]
    fn run<L: Level>(self) -> W {
        dot::<L, W>(self.0, self.1)
    }
}

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
