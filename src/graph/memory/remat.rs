//! Rematerialisation: blocks that are cheap to recompute are not kept across the memory peak. The
//! choice is greedy, after Kirisame et al. (2021): at the peak, the block that frees most bytes for
//! the least time goes first. No value changes: what is recomputed depends only on memory that has
//! not been written since.

mod state;

use smallvec::smallvec;

use crate::graph::Kernels;
use crate::graph::draft::{Again, Draft};
use state::{Candidate, State};

/// What is worth recomputing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Smaller blocks are kept.
    pub bytes: usize,
    /// The share of a run's time that may be spent on recomputation.
    pub share: f64,
    /// The fraction by which the peak has to fall; otherwise nothing is recomputed.
    pub gain: f64,
    /// The same, per share of the time that is spent.
    pub rate: f64,
}

impl Limits {
    /// The limits that apply by default.
    pub const DEFAULT: Limits = Limits { bytes: 1 << 20, share: 0.06, gain: 0.02, rate: 5.0 };
    /// No limits: recompute whatever lowers the peak.
    pub const NONE: Limits = Limits { bytes: 1, share: 1.0, gain: 0.0, rate: 0.0 };
}

/// What to recompute, and before which step.
pub fn choose(draft: &Draft, kernels: &Kernels, limits: Limits) -> Vec<Again> {
    let mut state = State::new(draft, kernels, limits.bytes);
    let (whole, most) = (state.times.iter().sum::<f64>(), state.peak().1);
    let (mut chosen, mut lowest, mut useful, mut spent) = (Vec::new(), most, 0, 0.0);
    while let Some(best) = state.best(limits.share * whole - spent) {
        spent += best.time;
        state.apply(&best);
        let Candidate { maker, block, before, .. } = best;
        chosen.push(Again { maker, blocks: smallvec![block], before });
        let peak = state.peak().1;
        let saved = 1.0 - peak as f64 / most as f64;
        if peak < lowest && saved >= limits.gain.max(limits.rate * spent / whole) {
            (lowest, useful) = (peak, chosen.len());
        }
    }
    chosen.truncate(useful);
    // Of two blocks recomputed before one step, the one made first in the recording comes first,
    // since the other may depend on it.
    chosen.sort_unstable_by_key(|again| (again.before, again.maker));
    chosen
}

#[cfg(test)]
mod tests;
