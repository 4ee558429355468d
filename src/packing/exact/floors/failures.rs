//! States that have no packing.

use rustc_hash::FxHashSet;

/// How many are remembered.
const MOST: usize = 1 << 21;

/// The numbers that stand for them.
#[derive(Default)]
pub(super) struct Failures(FxHashSet<u128>);

impl Failures {
    pub(super) fn insert(&mut self, state: u128) {
        if self.0.len() < MOST {
            self.0.insert(state);
        }
    }

    /// Whether some state is known to have no packing.
    pub(super) fn have_any(&self, states: &[u128]) -> bool {
        states.iter().any(|state| self.0.contains(state))
    }
}
