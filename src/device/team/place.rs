//! Where workers run: not on the processor of the thread that calls them.
//!
//! Linux may wake a thread on the processor of the one that wakes it, if that has had little to do of
//! late. In a virtual machine it often does, since a processor that is halted there passes for busy.
//! The two would then take turns, for milliseconds each, while the other processor has nothing to do.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::SeqCst};

use super::system::milliseconds;

/// Milliseconds of sleep after which the calling thread's processor has had little to do.
const PAUSE: u64 = 4;
/// Milliseconds for which it then has had little to do of late.
const LATELY: u64 = 200;
/// A time of going to sleep that never comes.
const AWAKE: u64 = u64::MAX;

/// A worker's thread, and since when it sleeps.
pub struct Place {
    /// 0 for a worker that has never slept.
    thread: AtomicI32,
    since: AtomicU64,
}

impl Place {
    pub const fn new() -> Self {
        Place { thread: AtomicI32::new(0), since: AtomicU64::new(AWAKE) }
    }

    /// Notes that the calling thread, the worker, goes to sleep.
    pub fn sleeps(&self) {
        self.thread.store(moving::thread(), SeqCst);
        self.since.store(milliseconds(), SeqCst);
    }

    /// Notes that it is awake.
    pub fn wakes(&self) {
        self.since.store(AWAKE, SeqCst);
    }

    /// Whether the worker sleeps, or is about to.
    pub fn is_asleep(&self) -> bool {
        self.since.load(SeqCst) != AWAKE
    }

    /// Keeps the worker off the calling thread's processor until the result is dropped. Where it
    /// then is, it may stay.
    pub fn elsewhere(&self) -> Option<moving::Elsewhere> {
        let thread = self.thread.load(SeqCst);
        if thread == 0 { None } else { moving::Elsewhere::new(thread) }
    }
}

/// Until when threads may meet on a processor, in milliseconds.
pub struct Danger(AtomicU64);

impl Danger {
    pub const fn new() -> Self {
        Danger(AtomicU64::new(0))
    }

    /// Whether one of these workers may meet the calling thread when it is woken.
    pub fn is_there<'a>(&self, workers: impl Iterator<Item = &'a Place>) -> bool {
        let Some(first) = workers.map(|place| place.since.load(SeqCst)).min() else { return false };
        let now = milliseconds();
        if now.saturating_sub(first) >= PAUSE {
            self.0.store(now + LATELY, SeqCst);
        }
        now < self.0.load(SeqCst)
    }
}

#[cfg(target_os = "linux")]
mod moving {
    use libc::{CPU_CLR, CPU_COUNT, CPU_ISSET, SYS_gettid, cpu_set_t, sched_getcpu, syscall};

    use crate::device::team::system::{allow, processors_of};

    /// A thread that may not run on one of its processors, as long as this lives.
    pub struct Elsewhere {
        thread: i32,
        before: cpu_set_t,
    }

    impl Elsewhere {
        /// Not on the calling thread's processor; `None` if the thread may run nowhere else, or the
        /// system refuses.
        pub fn new(thread: i32) -> Option<Self> {
            let before = processors_of(thread)?;
            let others = without(before, here()?)?;
            allow(thread, &others).then_some(Elsewhere { thread, before })
        }
    }

    impl Drop for Elsewhere {
        fn drop(&mut self) {
            allow(self.thread, &self.before);
        }
    }

    /// A set of processors without one of them; `None` if that is none or the only one.
    fn without(mut set: cpu_set_t, processor: usize) -> Option<cpu_set_t> {
        // SAFETY: the set is plain bits, and the one that is read and cleared is among them.
        unsafe {
            let is_in = processor < 8 * size_of_val(&set) && CPU_ISSET(processor, &set);
            if is_in {
                CPU_CLR(processor, &mut set);
            }
            (is_in && CPU_COUNT(&set) > 0).then_some(set)
        }
    }

    /// The number of the calling thread.
    pub fn thread() -> i32 {
        // SAFETY: the call takes nothing.
        unsafe { syscall(SYS_gettid) as i32 }
    }

    /// The processor of the calling thread.
    fn here() -> Option<usize> {
        // SAFETY: the call takes nothing.
        usize::try_from(unsafe { sched_getcpu() }).ok()
    }
}

/// Other systems choose processors themselves.
#[cfg(not(target_os = "linux"))]
mod moving {
    /// Nothing.
    pub struct Elsewhere;

    impl Elsewhere {
        pub fn new(_: i32) -> Option<Self> {
            None
        }
    }

    pub fn thread() -> i32 {
        0
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::channel;

    use libc::CPU_COUNT;

    use super::*;
    use crate::device::team::system::processors_of;

    fn count(thread: i32) -> i32 {
        // SAFETY: the set is plain bits.
        unsafe { CPU_COUNT(&processors_of(thread).unwrap()) }
    }

    #[test]
    fn a_sleeper_is_kept_off_the_callers_processor_for_a_while() {
        let place = Arc::new(Place::new());
        assert!(place.elsewhere().is_none(), "it has not slept");
        let (noted, has_noted) = channel();
        let (end, is_over) = channel::<()>();
        let sleeper = std::thread::spawn({
            let place = place.clone();
            move || {
                place.sleeps();
                noted.send(()).unwrap();
                is_over.recv().unwrap_err();
                place.wakes();
            }
        });
        has_noted.recv().unwrap();
        assert!(place.is_asleep());
        let thread = place.thread.load(SeqCst);
        let all = count(thread);
        let apart = place.elsewhere();
        assert_eq!(count(thread), if all > 1 { all - 1 } else { all });
        assert_eq!(apart.is_some(), all > 1);
        drop(apart);
        assert_eq!(count(thread), all);
        drop(end);
        sleeper.join().unwrap();
        assert!(!place.is_asleep());
        // The system may take a moment longer to end a thread than to let others know.
        let task = format!("/proc/self/task/{thread}");
        while std::path::Path::new(&task).exists() {
            std::thread::yield_now();
        }
        assert!(place.elsewhere().is_none(), "its thread has ended");
    }

    #[test]
    fn threads_may_meet_for_a_while_after_a_pause() {
        let (danger, place) = (Danger::new(), Place::new());
        let is_there = || danger.is_there([&place].into_iter());
        assert!(!is_there(), "awake");
        place.sleeps();
        assert!(!is_there(), "has just fallen asleep");
        place.since.fetch_sub(PAUSE, SeqCst);
        assert!(is_there());
        place.wakes();
        assert!(is_there());
        danger.0.fetch_sub(LATELY, SeqCst);
        assert!(!is_there() && !danger.is_there([].into_iter()));
    }
}
