//! Recomputation: what is cheap to compute again is not kept while memory is scarcest. The choice
//! is greedy, after Kirisame et al. (2021): where most bytes live at once, what frees most of them
//! for the least time goes first. Nothing here changes a value: what is computed again is a
//! function of what has not been written since.

mod state;

use smallvec::smallvec;

use super::draft::{Again, Draft};
use state::{Candidate, State};

/// What is worth being computed again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Blocks of fewer bytes are kept.
    pub bytes: usize,
    /// The share of a run's time that may go into computing again.
    pub share: f64,
    /// By what part the peak has to fall; else all stays as it is.
    pub gain: f64,
    /// The same for each part of the time that goes into it.
    pub rate: f64,
}

impl Limits {
    /// What a graph is worth without being asked.
    pub const DEFAULT: Limits = Limits { bytes: 1 << 20, share: 0.06, gain: 0.02, rate: 5.0 };
    /// Whatever lowers the peak.
    pub const NONE: Limits = Limits { bytes: 1, share: 1.0, gain: 0.0, rate: 0.0 };
}

/// What to compute again, and before which step.
pub fn choose(draft: &Draft, limits: Limits) -> Vec<Again> {
    let mut state = State::new(draft, limits.bytes);
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
    // Where one is computed from another, that one comes first: it did so before.
    chosen.sort_unstable_by_key(|again| (again.before, again.maker));
    chosen
}

#[cfg(test)]
mod tests;
