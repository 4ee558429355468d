//! Squeaky wheel optimization (Joslin and Clements, 1999): what ends too high is placed earlier
//! the next time.

use super::first_fit::FirstFit;
use super::{Best, Piece};

/// Comparisons of pieces that may be spent.
const BUDGET: usize = 10_000_000;

/// Tries all orders, then changes the one that came furthest, until the bound is nearly met or
/// the budget is spent.
pub(super) fn search(pieces: &[Piece], orders: Vec<Vec<u32>>, best: &mut Best) {
    let mut fit = FirstFit::new(pieces);
    let mut furthest = (0, Vec::new());
    for order in orders {
        let reached = attempt(pieces, &mut fit, &order, best);
        if best.is_done() {
            return;
        }
        if reached > furthest.0 {
            furthest = (reached, order);
        }
    }
    let (mut order, mut random, mut spent) = (furthest.1, Random(1), 0);
    while best.height > best.bound + best.bound / 512 && spent < BUDGET {
        let at = attempt(pieces, &mut fit, &order, best);
        spent += at * at / 2 + 16 * at;
        if at < order.len() {
            let to = if random.below(2) == 0 { at / 2 } else { random.below(at.max(1)) };
            order[to..=at].rotate_right(1);
        }
    }
}

/// Places pieces in an order, and keeps that if it is lower; answers how many it could place.
fn attempt(pieces: &[Piece], fit: &mut FirstFit, order: &[u32], best: &mut Best) -> usize {
    match fit.place(order, best.height) {
        Ok(offsets) => {
            best.keep(pieces, offsets.to_vec());
            order.len()
        }
        Err(at) => at,
    }
}

/// Numbers that are the same each time (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}
