//! Local search: squeaky wheel optimization (Joslin and Clements, 1999), by which what ends too high
//! is placed earlier the next time; and turning an arena upside down.

use std::cmp::Reverse;

use super::first_fit::FirstFit;
use super::random::Random;
use super::{Best, Piece};

/// Comparisons of pieces that may be spent.
const BUDGET: usize = 10_000_000;

/// Tries all orders until the bound is met, then changes the one that came furthest until it is
/// nearly met or the budget is spent.
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
    let (mut order, mut random, mut spent) = (furthest.1, Random::new(0), 0);
    while !best.is_near() && spent < BUDGET {
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

/// Turns an arena upside down: pieces fall, the formerly highest first, as far as others let them
/// ("push-down"; in project scheduling, justification). It never ends up higher.
pub(super) fn turned(pieces: &[Piece], offsets: &[usize]) -> Vec<usize> {
    let mut order: Vec<u32> = (0..pieces.len() as u32).collect();
    order.sort_by_key(|&p| Reverse(offsets[p as usize] + pieces[p as usize].size));
    let mut fit = FirstFit::new(pieces);
    fit.place(&order, usize::MAX).map_or_else(|_| offsets.to_vec(), <[usize]>::to_vec)
}
