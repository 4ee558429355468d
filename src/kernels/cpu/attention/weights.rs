//! Softmax of a block of scores, with running maxima and sums (Milakov and Gimelshein, 2018).

use crate::kernels::cpu::matmul::tile::Sum;
use crate::kernels::cpu::simd::isa::{Body, Level};
use crate::kernels::cpu::simd::wide::Wide;

/// Loops work on so many elements at a time.
pub const LANES: usize = 32;

/// What is known of each row so far.
pub struct Running<'a, W> {
    /// The greatest score, -inf before the first.
    pub greatest: &'a mut [W],
    /// The sum of the exponentials relative to it.
    pub sums: &'a mut [W],
    /// The sums of the values that these weigh, row by row.
    pub values: &'a mut [W],
}

/// Turns rows of products of queries and keys into weights relative to the running maxima, which
/// it updates.
pub struct Weigh<'a, W, L> {
    /// Rows of `width` products, then weights.
    pub scores: &'a mut [W],
    /// The number of keys of the block.
    pub width: usize,
    /// What products are multiplied by.
    pub scale: W,
    /// Writes what is added to the first scores of a row, as many as there is room; false where
    /// nothing is.
    pub bias: L,
    /// Room for a row.
    pub room: &'a mut [W],
    /// How many keys of the block each row sees.
    pub seen: &'a [usize],
    /// The rows.
    pub running: Running<'a, W>,
}

impl<W: Wide + Sum, B: FnMut(usize, &mut [W]) -> bool> Body for Weigh<'_, W, B> {
    type Output = ();

    #[inline(always)]
    fn run<L: Level>(mut self) {
        let Running { greatest, sums, values } = self.running;
        let columns = values.len() / greatest.len().max(1);
        for (i, row) in self.scores.chunks_exact_mut(self.width).enumerate() {
            let seen = self.seen[i];
            let biased = (self.bias)(i, &mut self.room[..seen]);
            let scale = prepared::<W>(row, seen, self.scale, biased.then_some(&self.room[..]));
            // What is multiplied by the scale below is padded to whole steps of the loops.
            let end = seen.next_multiple_of(LANES).min(row.len());
            let (seen, rest) = row.split_at_mut(end);
            rest.fill(W::ZERO);
            let now = larger(greatest[i], most(seen, scale));
            let base = if now == W::LOWEST { W::ZERO } else { now };
            let sum = exponentials::<W, L>(seen, scale, base);
            let factor = (greatest[i] - base).exp_flushed::<L>();
            sums[i] = sums[i] * factor + sum;
            if now != greatest[i] {
                let values = &mut values[i * columns..(i + 1) * columns];
                values.iter_mut().for_each(|value| *value = *value * factor);
            }
            greatest[i] = now;
        }
    }
}

/// Adds the bias to the scaled products, if there is one, and sets those of keys that are not seen
/// to -inf; returns what is left to multiply by.
#[inline(always)]
pub fn prepared<W: Wide + Sum>(row: &mut [W], seen: usize, scale: W, bias: Option<&[W]>) -> W {
    let (inside, rest) = row.split_at_mut(seen);
    rest.fill(W::LOWEST);
    if let Some(bias) = bias {
        for (score, bias) in inside.iter_mut().zip(bias) {
            *score = if *bias == W::LOWEST { W::LOWEST } else { *score * scale + *bias };
        }
    } else if scale > W::ZERO {
        return scale;
    } else {
        inside.iter_mut().for_each(|score| *score = *score * scale);
    }
    W::ONE
}

#[inline(always)]
fn larger<W: Wide>(a: W, b: W) -> W {
    if b > a { b } else { a }
}

/// The greatest element times `scale`; NaN is left out.
#[inline(always)]
fn most<W: Wide + Sum>(row: &[W], scale: W) -> W {
    let mut lanes = [W::LOWEST; LANES];
    let chunks = row.chunks_exact(LANES);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *lane = larger(*lane, *x * scale);
        }
    }
    for (lane, x) in lanes.iter_mut().zip(rest) {
        *lane = larger(*lane, *x * scale);
    }
    lanes.iter().fold(W::LOWEST, |a, b| larger(a, *b))
}

/// Replaces the elements by the exponentials of the scaled ones relative to `base`; their sum.
#[inline(always)]
fn exponentials<W: Wide, L: Level>(row: &mut [W], scale: W, base: W) -> W {
    let mut lanes = [W::ZERO; LANES];
    let mut chunks = row.chunks_exact_mut(LANES);
    for chunk in &mut chunks {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *x = (*x * scale - base).exp_flushed::<L>();
            *lane = *lane + *x;
        }
    }
    for (lane, x) in lanes.iter_mut().zip(chunks.into_remainder()) {
        *x = (*x * scale - base).exp_flushed::<L>();
        *lane = *lane + *x;
    }
    lanes.iter().fold(W::ZERO, |a, b| a + *b)
}
