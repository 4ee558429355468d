//! How long an idle worker waits before it takes a task from another one.

#[cfg(all(test, loom))]
pub(super) use checked::Patience;
#[cfg(not(all(test, loom)))]
pub(super) use timed::Patience;

#[cfg(not(all(test, loom)))]
mod timed {
    use std::time::{Duration, Instant};

    /// What a theft has to keep a worker busy for to be worth it: both pay for moving the lines of
    /// memory that they then share.
    const WORTH: Duration = Duration::from_micros(1);
    /// How long a worker waits after a theft that was not worth it; twice as long after another.
    const LEAST: Duration = Duration::from_nanos(500);
    /// The longest wait.
    const MOST: Duration = Duration::from_micros(32);
    /// Who is idle for longer lets others have the processor.
    const BUSY: Duration = Duration::from_micros(100);
    /// How often to look at what others offer, in pauses of the processor.
    const PAUSES: usize = 8;

    /// See the module's documentation. Where tasks are so short that threads which share them
    /// only wait for each other's caches, one thread does most of the work; where each takes
    /// microseconds, nobody ever waits.
    pub(in super::super) struct Patience {
        /// When the last theft was.
        theft: Option<Instant>,
        /// When the worker became idle.
        idle: Instant,
        pause: Duration,
    }

    impl Patience {
        pub(in super::super) fn new() -> Self {
            Patience { theft: None, idle: Instant::now(), pause: Duration::ZERO }
        }

        /// The worker has become idle.
        pub(in super::super) fn begin(&mut self) {
            self.idle = Instant::now();
            let Some(theft) = self.theft.take() else { return };
            self.pause = match self.idle - theft < WORTH {
                true => (2 * self.pause).clamp(LEAST, MOST),
                false => Duration::ZERO,
            };
        }

        /// Whether it may take a task now.
        pub(in super::super) fn is_over(&self) -> bool {
            self.pause.is_zero() || self.idle.elapsed() >= self.pause
        }

        /// It has taken one.
        pub(in super::super) fn end(&mut self) {
            self.theft = Some(Instant::now());
        }

        /// Waits a little.
        pub(in super::super) fn wait(&self) {
            match self.idle.elapsed() < BUSY {
                true => (0..PAUSES).for_each(|_| std::hint::spin_loop()),
                false => std::thread::yield_now(),
            }
        }
    }
}

#[cfg(all(test, loom))]
mod checked {
    /// No patience at all: every theft that may happen is tried.
    pub(in super::super) struct Patience;

    impl Patience {
        pub(in super::super) fn new() -> Self {
            Patience
        }

        pub(in super::super) fn begin(&mut self) {}

        pub(in super::super) fn is_over(&self) -> bool {
            true
        }

        pub(in super::super) fn end(&mut self) {}

        pub(in super::super) fn wait(&self) {
            loom::thread::yield_now();
        }
    }
}
