//! Gradients of a block of scores, from the weights computed a second time.

use super::weights::prepared;
use crate::kernels::cpu::matmul::tile::Sum;
use crate::kernels::cpu::simd::isa::{Body, Level};
use crate::kernels::cpu::simd::wide::Wide;

/// Replaces products by weights, and gradients of weights by those of products; both are keys x
/// queries.
pub struct Slopes<'a, W, B, D> {
    /// For each key the products with all queries, then the weights, those dropped being 0.
    pub scores: &'a mut [W],
    /// For each key the products of its value with the gradients of all results, then the gradients
    /// of the scores.
    pub slopes: &'a mut [W],
    /// The number of queries.
    pub width: usize,
    /// What products are multiplied by.
    pub scale: W,
    /// Writes what is added to a key's scores with all queries; false where nothing is.
    pub bias: B,
    /// Room for that.
    pub room: &'a mut [W],
    /// The first query that sees a key.
    pub first: D,
    /// The logarithm of each query's sum, and the product of its result and that one's gradient.
    pub rows: [&'a [W]; 2],
    /// What each weight is multiplied by, if weights are dropped.
    pub factors: Option<&'a [W]>,
}

impl<W, B, D> Body for Slopes<'_, W, B, D>
where
    W: Wide + Sum,
    B: FnMut(usize, &mut [W]) -> bool,
    D: Fn(usize) -> usize,
{
    type Output = ();

    #[inline(always)]
    fn run<L: Level>(mut self) {
        let width = self.width;
        let pairs = self.scores.chunks_exact_mut(width).zip(self.slopes.chunks_exact_mut(width));
        for (j, (scores, slopes)) in pairs.enumerate() {
            let first = (self.first)(j);
            scores[..first].fill(W::ZERO);
            slopes[..first].fill(W::ZERO);
            let bias = (self.bias)(j, self.room).then_some(&self.room[first..]);
            let scores = &mut scores[first..];
            let scale = prepared::<W>(scores, width - first, self.scale, bias);
            let [log, own] = self.rows.map(|row| &row[first..]);
            let factors = self.factors.map(|all| &all[j * width + first..(j + 1) * width]);
            let slopes = &mut slopes[first..];
            weights::<W, L>(scores, log, scale);
            match factors {
                None => plain_slopes(scores, slopes, own),
                Some(factors) => dropped_slopes(scores, slopes, own, factors),
            }
        }
    }
}

#[inline(always)]
fn weights<W: Wide, L: Level>(scores: &mut [W], log: &[W], scale: W) {
    for (score, log) in scores.iter_mut().zip(log) {
        // A weight is at most 1, whatever the rounding of large scores.
        let excess = *score * scale - *log;
        *score = (if excess > W::ZERO { W::ZERO } else { excess }).exp_flushed::<L>();
    }
}

#[inline(always)]
fn plain_slopes<W: Wide>(weights: &[W], slopes: &mut [W], own: &[W]) {
    for ((weight, slope), own) in weights.iter().zip(slopes).zip(own) {
        *slope = *weight * (*slope - *own);
    }
}

#[inline(always)]
fn dropped_slopes<W: Wide>(weights: &mut [W], slopes: &mut [W], own: &[W], factors: &[W]) {
    for (((weight, slope), own), factor) in weights.iter_mut().zip(slopes).zip(own).zip(factors) {
        *slope = *weight * (*slope * *factor - *own);
        *weight = *weight * *factor;
    }
}
