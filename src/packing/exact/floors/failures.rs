//! Parts that have no packing, and searches that remember them.

use std::ops::Range;

use rustc_hash::FxHashSet;

use super::Verdict;

/// How many are remembered.
const MOST: usize = 1 << 21;

/// The numbers that stand for them.
#[derive(Default)]
pub(super) struct Failures(FxHashSet<u128>);

impl Failures {
    fn insert(&mut self, state: u128) {
        if self.0.len() < MOST {
            self.0.insert(state);
        }
    }

    /// Whether a state is known to have no packing.
    fn have(&self, state: u128) -> bool {
        self.0.contains(&state)
    }
}

/// A search that packs each part of a part by itself.
pub(super) trait Divided {
    /// What a part is packed from, besides the state.
    type From: Copy;

    /// What has no packing.
    fn failures(&mut self) -> &mut Failures;

    /// How many tiles are placed and sections left free.
    fn depth(&mut self) -> &mut usize;

    fn part(&mut self, part: &Range<usize>, from: Self::From) -> Verdict;

    /// Packs all parts, each given with the number that stands for its state.
    fn all(&mut self, parts: &[(Range<usize>, u128)], from: Self::From) -> Verdict {
        if parts.iter().any(|(_, state)| self.failures().have(*state)) {
            return Verdict::Impossible;
        }
        for (part, state) in parts {
            *self.depth() += 1;
            let verdict = self.part(part, from);
            *self.depth() -= 1;
            if verdict == Verdict::Impossible {
                self.failures().insert(*state);
            }
            if verdict != Verdict::Found {
                return verdict;
            }
        }
        Verdict::Found
    }
}
