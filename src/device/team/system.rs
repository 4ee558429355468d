//! What the team asks of the operating system: processors of threads, and a clock.
#![allow(unsafe_code)]

pub use platform::milliseconds;
#[cfg(target_os = "linux")]
pub use platform::{allow, processors_of};

#[cfg(target_os = "linux")]
mod platform {
    use libc::{
        CLOCK_MONOTONIC_COARSE, clock_gettime, cpu_set_t, sched_getaffinity, sched_setaffinity,
        timespec,
    };

    /// The processors that a thread may run on; 0 is the calling one.
    pub fn processors_of(thread: i32) -> Option<cpu_set_t> {
        // SAFETY: a set of processors is plain bits, and the call writes no more than its size.
        unsafe {
            let mut set: cpu_set_t = std::mem::zeroed();
            (sched_getaffinity(thread, size_of_val(&set), &mut set) == 0).then_some(set)
        }
    }

    /// Lets a thread, 0 for the calling one, run on these processors; false if the system refuses.
    pub fn allow(thread: i32, set: &cpu_set_t) -> bool {
        // SAFETY: the set is live.
        unsafe { sched_setaffinity(thread, size_of_val(set), set) == 0 }
    }

    /// Milliseconds of a clock that is cheap to read.
    pub fn milliseconds() -> u64 {
        let mut now = timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the call writes the time.
        unsafe { clock_gettime(CLOCK_MONOTONIC_COARSE, &mut now) };
        now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000
    }
}

#[cfg(not(target_os = "linux"))]
mod platform {
    use std::sync::OnceLock;
    use std::time::Instant;

    /// Milliseconds since the first call.
    pub fn milliseconds() -> u64 {
        static FIRST: OnceLock<Instant> = OnceLock::new();
        FIRST.get_or_init(Instant::now).elapsed().as_millis() as u64
    }
}
