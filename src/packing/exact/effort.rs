//! The effort that a search may spend.

use std::time::Instant;

/// The clock is checked every this many steps.
const LOOK: u64 = 64;

/// A number of steps and, optionally, a deadline.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    steps: u64,
    until: Option<Instant>,
}

impl Effort {
    /// A number of steps: results are the same on every machine.
    pub fn steps(steps: u64) -> Effort {
        Effort { steps, until: None }
    }

    /// Any number of steps until a deadline.
    pub fn until(time: Instant) -> Effort {
        Effort { steps: u64::MAX, until: Some(time) }
    }

    /// Spends some steps; None if not enough are left.
    pub(super) fn spend(&mut self, steps: u64) -> Option<()> {
        let left = self.steps.checked_sub(steps);
        let is_time_to_look = left.is_none_or(|left| left / LOOK != self.steps / LOOK);
        self.steps = left.unwrap_or(0);
        if is_time_to_look && self.until.is_some_and(|time| Instant::now() >= time) {
            self.steps = 0;
        }
        left.map(|_| ())
    }

    /// The steps that are left.
    pub(super) fn left(&self) -> u64 {
        self.steps
    }

    /// Whether nothing is left.
    pub(super) fn is_spent(&self) -> bool {
        self.steps == 0
    }

    /// Runs something that may spend at most `steps` of the remaining steps.
    pub(super) fn limited<T>(&mut self, steps: u64, run: impl FnOnce(&mut Effort) -> T) -> T {
        let mut part = Effort { steps: steps.min(self.steps), until: self.until };
        let given = part.steps;
        let result = run(&mut part);
        _ = self.spend(given - part.steps);
        result
    }
}
