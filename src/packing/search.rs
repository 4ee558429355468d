//! Local search: squeaky wheel optimization (Joslin and Clements, 1999), which places pieces that
//! ended too high earlier the next time; and turning an arena upside down.

use std::cmp::Reverse;

use super::first_fit::FirstFit;
use super::random::Random;
use super::{Best, Piece};

/// The budget of piece comparisons.
const BUDGET: usize = 40_000_000;
/// The share of it for shaking.
const SHAKES: usize = BUDGET / 4;
/// Trials per order in the first round.
const TRIALS: usize = 2000;
/// Trials without progress after which the search returns to the order that got furthest.
const PATIENCE: usize = 300;

/// Tries all orders until the bound is reached, then varies them in turn, longer each round, until
/// it is nearly reached or the budget is spent.
pub(super) fn search(pieces: &[Piece], orders: &[Vec<u32>], best: &mut Best) {
    let mut fit = FirstFit::new(pieces);
    for order in orders {
        if let Ok(offsets) = fit.place(order, usize::MAX) {
            best.attempt(pieces, || Some(turned(pieces, offsets)));
        }
    }
    let mut wheel = Wheel { pieces, fit, random: Random::new(0), spent: 0 };
    wheel.shake(best);
    let rounds = (0..).flat_map(|round| orders.iter().map(move |order| (round, order)));
    for (round, order) in rounds {
        if best.is_near() || wheel.spent >= BUDGET {
            break;
        }
        wheel.turn(order.clone(), TRIALS << (round / 2), round % 2 == 0, best);
    }
}

/// Places pieces repeatedly, in varying orders.
struct Wheel<'a> {
    pieces: &'a [Piece],
    fit: FirstFit<'a>,
    random: Random,
    /// The approximate number of piece comparisons so far.
    spent: usize,
}

impl Wheel<'_> {
    /// Varies an order up to `trials` times, or until the bound is nearly reached. If `is_bold`, it
    /// aims straight for the bound, otherwise for anything lower than the best.
    fn turn(&mut self, mut order: Vec<u32>, trials: usize, is_bold: bool, best: &mut Best) {
        let (mut furthest, mut since) = ((0, order.clone()), 0);
        for _ in 0..trials {
            let limit = if is_bold { best.enough() + 1 } else { best.height };
            let at = self.attempt(&order, limit, best);
            if best.is_near() || self.spent >= BUDGET {
                return;
            }
            since += 1;
            if at > furthest.0 {
                (furthest, since) = ((at, order.clone()), 0);
            } else if since > PATIENCE {
                (order, since) = (furthest.1.clone(), 0);
            }
            self.hasten(&mut order, at);
        }
    }

    /// Turns the best arena upside down repeatedly, every fourth time with a slightly shuffled
    /// order.
    fn shake(&mut self, best: &mut Best) {
        let mut offsets = best.offsets.clone();
        for noise in [best.bound / 100, 0, 0, 0].into_iter().cycle() {
            if best.is_near() || self.spent >= SHAKES {
                return;
            }
            let order = from_top(self.pieces, &offsets, || self.random.below(noise + 1));
            if self.attempt(&order, best.height + 1, best) == order.len() {
                offsets.copy_from_slice(self.fit.offsets());
            }
        }
    }

    /// Places pieces below a limit, and keeps the result if all fit; returns how many could be
    /// placed.
    fn attempt(&mut self, order: &[u32], limit: usize, best: &mut Best) -> usize {
        let at = match self.fit.place(order, limit) {
            Ok(offsets) => {
                best.keep(self.pieces, offsets.to_vec());
                order.len()
            }
            Err(at) => at,
        };
        self.spent += at * at / 2 + 16 * at;
        at
    }

    /// Moves the piece that did not fit to an earlier position in the order.
    fn hasten(&mut self, order: &mut [u32], at: usize) {
        let at = at.min(order.len() - 1);
        let to = if self.random.below(2) == 0 { at / 2 } else { self.random.below(at.max(1)) };
        order[to..=at].rotate_right(1);
    }
}

/// Turns an arena upside down: pieces fall as far as others let them, the formerly highest first
/// ("push-down"; in project scheduling, justification). The arena never becomes higher.
pub(super) fn turned(pieces: &[Piece], offsets: &[usize]) -> Vec<usize> {
    let mut fit = FirstFit::new(pieces);
    let placed = fit.place(&from_top(pieces, offsets, || 0), usize::MAX);
    placed.map_or_else(|_| offsets.to_vec(), <[usize]>::to_vec)
}

/// Pieces in the order of their upper ends plus some noise, the highest first.
fn from_top(pieces: &[Piece], offsets: &[usize], mut noise: impl FnMut() -> usize) -> Vec<u32> {
    let ends = pieces.iter().zip(offsets).map(|(piece, offset)| offset + piece.size + noise());
    let mut order: Vec<(Reverse<usize>, u32)> = ends.map(Reverse).zip(0u32..).collect();
    order.sort_unstable();
    order.into_iter().map(|(_, piece)| piece).collect()
}
