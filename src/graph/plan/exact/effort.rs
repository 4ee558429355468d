//! How much a search may cost.

use std::time::Instant;

/// After so many steps the clock is looked at.
const LOOK: u64 = 64;

/// So many steps, and, where asked for, until some time.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    steps: u64,
    until: Option<Instant>,
}

impl Effort {
    /// So many steps: the result is the same on each machine.
    pub fn steps(steps: u64) -> Effort {
        Effort { steps, until: None }
    }

    /// Until some time.
    pub fn until(time: Instant) -> Effort {
        Effort { steps: u64::MAX, until: Some(time) }
    }

    /// Takes some steps; None if there are not as many left.
    pub(super) fn spend(&mut self, steps: u64) -> Option<()> {
        let left = self.steps.checked_sub(steps);
        let is_time_to_look = left.is_none_or(|left| left / LOOK != self.steps / LOOK);
        self.steps = left.unwrap_or(0);
        if is_time_to_look && self.until.is_some_and(|time| Instant::now() >= time) {
            self.steps = 0;
        }
        left.map(|_| ())
    }

    /// Whether all is spent.
    pub(super) fn is_spent(&self) -> bool {
        self.steps == 0
    }

    /// Does something that may spend only so many steps.
    pub(super) fn limited<T>(&mut self, steps: u64, run: impl FnOnce(&mut Effort) -> T) -> T {
        let mut part = Effort { steps: steps.min(self.steps), until: self.until };
        let given = part.steps;
        let result = run(&mut part);
        _ = self.spend(given - part.steps);
        result
    }
}
