//! Dot products.

use super::isa::{Body, Level};
use super::wide::Wide;

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
