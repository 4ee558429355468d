//! A number in shared memory that threads of other processes wait for.

use std::ptr::null;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, SeqCst};
use std::time::Duration;

use libc::{FUTEX_WAIT, FUTEX_WAKE, SYS_futex, syscall, time_t, timespec};

/// A number that one rank counts up and others wait for, and how many of them sleep. Numbers are
/// compared by their difference, so that they may overflow.
///
/// Its futex is not private: the sleepers are in other processes. A process that dies asleep stays
/// in the count, which costs superfluous wakes alone.
#[repr(C, align(128))]
pub struct Signal {
    number: AtomicU32,
    sleepers: AtomicU32,
}

impl Signal {
    /// The number; what its writer did before is visible afterwards.
    pub fn get(&self) -> u32 {
        self.number.load(Acquire)
    }

    /// Whether the number is `goal` or a later one.
    pub fn has_reached(&self, goal: u32) -> bool {
        is_reached(self.get(), goal)
    }

    /// Sets the number and wakes who sleeps.
    pub fn set(&self, number: u32) {
        self.number.store(number, SeqCst);
        self.wake();
    }

    /// A sleeper counts itself before it looks at the number for the last time, and the number has
    /// changed before this looks at the count: none sleeps through a change.
    pub fn wake(&self) {
        if self.sleepers.load(SeqCst) > 0 {
            // SAFETY: the address is that of a live number of 32 bits.
            unsafe { syscall(SYS_futex, self.number.as_ptr(), FUTEX_WAKE, i32::MAX) };
        }
    }

    /// Looks at the number up to `pauses` times; whether it has reached `goal`.
    pub fn spin(&self, goal: u32, pauses: u32) -> bool {
        (0..pauses).any(|_| {
            std::hint::spin_loop();
            self.has_reached(goal)
        })
    }

    /// Sleeps until the number changes unless it has reached `goal`, but not much longer than
    /// `longest`. May return early.
    pub fn sleep(&self, goal: u32, longest: Duration) {
        self.sleepers.fetch_add(1, SeqCst);
        let seen = self.number.load(SeqCst);
        if !is_reached(seen, goal) {
            let longest = timespec {
                tv_sec: longest.as_secs() as time_t,
                tv_nsec: longest.subsec_nanos() as _,
            };
            let (address, other) = (self.number.as_ptr(), null::<u32>());
            // SAFETY: the address is that of a live number of 32 bits, and the time outlives the call.
            unsafe { syscall(SYS_futex, address, FUTEX_WAIT, seen, &raw const longest, other, 0) };
        }
        self.sleepers.fetch_sub(1, SeqCst);
    }
}

fn is_reached(number: u32, goal: u32) -> bool {
    number.wrapping_sub(goal).cast_signed() >= 0
}

#[cfg(test)]
mod tests {
    use super::is_reached;

    #[test]
    fn numbers_are_compared_across_their_overflow() {
        assert!(is_reached(5, 5) && is_reached(6, 5) && !is_reached(4, 5));
        assert!(is_reached(1, u32::MAX) && !is_reached(u32::MAX, 1));
    }
}
