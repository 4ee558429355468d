//! How long an idle worker waits before it asks for a task of another one.

#[cfg(all(test, loom))]
pub(super) use checked::Patience;
#[cfg(not(all(test, loom)))]
pub(super) use timed::Patience;

#[cfg(not(all(test, loom)))]
mod timed {
    use std::time::{Duration, Instant};

    /// What a task of others has to keep a worker busy for to be worth it: both pay for moving the
    /// lines of memory that they then share.
    const WORTH: Duration = Duration::from_micros(1);
    /// How long a worker waits after one that was not worth it; twice as long after another. Also
    /// how long it waits at least before it asks again.
    const LEAST: Duration = Duration::from_nanos(500);
    /// The longest wait.
    const MOST: Duration = Duration::from_micros(32);
    /// Who does not come for as long loses its part to who is idle: several times what a region of
    /// the team takes to begin.
    const LATE: Duration = Duration::from_micros(5);
    /// Who is idle for longer lets others have the processor.
    const BUSY: Duration = Duration::from_micros(100);
    /// How often to look around, in pauses of the processor.
    const PAUSES: usize = 8;

    /// See the module's documentation. Where tasks are so short that to take one from another
    /// thread costs more than to wait for one's own, workers hardly ever do so; where each takes
    /// microseconds, they do so at once.
    pub(in super::super) struct Patience {
        /// When the last task was taken from others.
        taken: Option<Instant>,
        /// When the worker became idle.
        idle: Instant,
        /// For how long it is.
        waited: Duration,
        /// How long it waits before it asks for the first time.
        pause: Duration,
        /// When it asks next, after becoming idle.
        due: Duration,
    }

    impl Patience {
        pub(in super::super) fn new() -> Self {
            Patience {
                taken: None,
                idle: Instant::now(),
                waited: Duration::ZERO,
                pause: Duration::ZERO,
                due: Duration::ZERO,
            }
        }

        /// The worker has become idle.
        pub(in super::super) fn begin(&mut self) {
            self.idle = Instant::now();
            if let Some(taken) = self.taken.take() {
                self.pause = match self.idle - taken < WORTH {
                    true => (2 * self.pause).clamp(LEAST, MOST),
                    false => Duration::ZERO,
                };
            }
            (self.waited, self.due) = (Duration::ZERO, self.pause);
        }

        /// Whether it asks others now. It asks again after twice the time, so that those who have
        /// nothing to give are hardly disturbed.
        pub(in super::super) fn asks(&mut self) -> bool {
            let is_due = self.waited >= self.due;
            if is_due {
                self.due = (2 * self.waited).max(LEAST);
            }
            is_due
        }

        /// Whether it has asked since it became idle.
        pub(in super::super) fn has_asked(&self) -> bool {
            self.waited >= self.pause
        }

        /// Whether it has waited long enough for those who have not come.
        pub(in super::super) fn adopts(&self) -> bool {
            self.waited >= LATE
        }

        /// It has taken a task from others.
        pub(in super::super) fn end(&mut self) {
            self.taken = Some(Instant::now());
        }

        /// Waits a little.
        pub(in super::super) fn wait(&mut self) {
            match self.waited < BUSY {
                true => (0..PAUSES).for_each(|_| std::hint::spin_loop()),
                false => std::thread::yield_now(),
            }
            self.waited = self.idle.elapsed();
        }
    }

    #[cfg(test)]
    mod tests;
}

#[cfg(all(test, loom))]
mod checked {
    /// No patience at all: whatever may happen is tried.
    pub(in super::super) struct Patience {
        has_asked: bool,
    }

    impl Patience {
        pub(in super::super) fn new() -> Self {
            Patience { has_asked: false }
        }

        pub(in super::super) fn begin(&mut self) {
            self.has_asked = false;
        }

        /// Once each time: more of the same would make the threads' orders endless.
        pub(in super::super) fn asks(&mut self) -> bool {
            !std::mem::replace(&mut self.has_asked, true)
        }

        pub(in super::super) fn has_asked(&self) -> bool {
            self.has_asked
        }

        pub(in super::super) fn adopts(&self) -> bool {
            true
        }

        pub(in super::super) fn end(&mut self) {}

        pub(in super::super) fn wait(&mut self) {
            loom::thread::yield_now();
        }
    }
}
