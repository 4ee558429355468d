//! Backoff: how long an idle worker waits before it asks another worker for a task.

#[cfg(all(test, loom))]
pub(super) use checked::Patience;
#[cfg(not(all(test, loom)))]
pub(super) use timed::Patience;

#[cfg(not(all(test, loom)))]
mod timed {
    use std::time::{Duration, Instant};

    /// The time for which a stolen task must keep a worker busy to be worth it: both workers pay
    /// for moving the cache lines that they then share.
    const WORTH: Duration = Duration::from_micros(1);
    /// The wait after a stolen task that was not worth it, doubled after each further one. Also the
    /// minimum time before a worker asks again.
    const LEAST: Duration = Duration::from_nanos(500);
    /// The longest wait.
    const MOST: Duration = Duration::from_micros(32);
    /// A worker that is idle for longer yields the processor.
    const BUSY: Duration = Duration::from_micros(100);
    /// Spin-loop pauses between two polls.
    const PAUSES: usize = 8;

    /// See the module's documentation. If tasks are so short that stealing one costs more than
    /// waiting, workers hardly ever steal; if tasks take microseconds, they steal at once.
    pub(in super::super) struct Patience {
        /// When the last task was stolen, unless the worker has become idle since.
        taken: Option<Instant>,
        /// When the worker became idle.
        idle: Instant,
        /// For how long it has been idle.
        waited: Duration,
        /// How long it waits before it asks for the first time.
        pause: Duration,
        /// When it asks next, measured from when it became idle.
        due: Duration,
        /// A worker that does not arrive within this time loses its part to an idle one.
        late: Duration,
    }

    impl Patience {
        pub(in super::super) fn new(late: Duration) -> Self {
            Patience {
                late,
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

        /// Whether to ask the others now. The interval doubles each time, so that workers with
        /// nothing to offer are hardly disturbed.
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

        /// Whether it has waited long enough to adopt the part of a worker that has not arrived.
        pub(in super::super) fn adopts(&self) -> bool {
            self.waited >= self.late
        }

        /// The worker has stolen a task.
        pub(in super::super) fn end(&mut self) {
            self.taken = Some(Instant::now());
        }

        /// Waits briefly.
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
    /// No waiting at all, so that the model checker explores every possibility.
    pub(in super::super) struct Patience {
        has_asked: bool,
    }

    impl Patience {
        pub(in super::super) fn new(_: std::time::Duration) -> Self {
            Patience { has_asked: false }
        }

        pub(in super::super) fn begin(&mut self) {
            self.has_asked = false;
        }

        /// Once per idle period: more would make the number of interleavings unbounded.
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
