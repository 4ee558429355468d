//! Waiting for a number in memory to change: a short spin, then sleep until another thread wakes.
#![allow(unsafe_code)]

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, SeqCst};
use std::time::{Duration, Instant};

/// How long a thread spins before it sleeps: longer than most gaps between two regions of a step,
/// and short beside the milliseconds for which a busy system gives a processor to somebody else.
const SPIN: Duration = Duration::from_micros(50);
/// Looks at the number between two looks at the clock.
const PAUSES: usize = 32;

/// A number that threads wait for, and how many of them sleep.
#[repr(align(128))]
pub struct Signal {
    value: AtomicU32,
    sleepers: AtomicU32,
}

impl Signal {
    pub const fn new() -> Self {
        Signal { value: AtomicU32::new(0), sleepers: AtomicU32::new(0) }
    }

    /// The number; what its writer did before is visible afterwards.
    pub fn get(&self) -> u32 {
        self.value.load(Acquire)
    }

    /// Whether threads sleep.
    pub fn has_sleepers(&self) -> bool {
        self.sleepers.load(SeqCst) > 0
    }

    /// Sets the number while nobody waits for it.
    pub fn set(&self, value: u32) {
        self.value.store(value, SeqCst);
    }

    /// Clears bits that nobody waits for.
    pub fn clear(&self, bits: u32) {
        self.value.fetch_and(!bits, SeqCst);
    }

    /// Replaces the number by what `change` makes of it, and returns the one before; `None` if it
    /// makes nothing of it. Wakes nobody.
    pub fn change(&self, change: impl FnMut(u32) -> Option<u32>) -> Option<u32> {
        self.value.fetch_update(SeqCst, SeqCst, change).ok()
    }

    /// Adds to the number and wakes up to `most` threads.
    pub fn add(&self, more: u32, most: usize) {
        self.value.fetch_add(more, SeqCst);
        self.wake(most);
    }

    /// Subtracts 1 from the number, and wakes all if it was one for which `is_last` holds.
    pub fn leave(&self, is_last: impl Fn(u32) -> bool) {
        if is_last(self.value.fetch_sub(1, SeqCst)) {
            self.wake(usize::MAX);
        }
    }

    /// Waits while the number is one for which `is_early` holds; returns the first that is not, and
    /// how long it took unless that was hardly any time. Calls `asleep` before it sleeps.
    pub fn wait(&self, is_early: impl Fn(u32) -> bool, asleep: impl FnOnce()) -> (u32, Duration) {
        if let Some(value) = self.look(&is_early) {
            return (value, Duration::ZERO);
        }
        let begun = Instant::now();
        while begun.elapsed() < SPIN {
            if let Some(value) = self.look(&is_early) {
                return (value, begun.elapsed());
            }
        }
        asleep();
        (self.sleep(is_early), begun.elapsed())
    }

    /// Looks at the number repeatedly; returns it once it is not early.
    fn look(&self, is_early: impl Fn(u32) -> bool) -> Option<u32> {
        (0..PAUSES).find_map(|_| {
            let value = self.get();
            std::hint::spin_loop();
            (!is_early(value)).then_some(value)
        })
    }

    fn sleep(&self, is_early: impl Fn(u32) -> bool) -> u32 {
        self.sleepers.fetch_add(1, SeqCst);
        let value = loop {
            let value = self.value.load(SeqCst);
            if !is_early(value) {
                break value;
            }
            system::sleep(&self.value, value);
        };
        self.sleepers.fetch_sub(1, SeqCst);
        value
    }

    /// A sleeper counts itself before it looks at the number for the last time, and the number has
    /// changed before this looks at the count: none sleeps through a change.
    fn wake(&self, most: usize) {
        let count = (self.sleepers.load(SeqCst) as usize).min(most);
        if count > 0 {
            system::wake(&self.value, count);
        }
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::ptr::null;
    use std::sync::atomic::AtomicU32;

    use libc::{FUTEX_PRIVATE_FLAG, FUTEX_WAIT, FUTEX_WAKE, SYS_futex, syscall, timespec};

    /// Sleeps until woken, or not at all if the number is another one. May return early.
    pub fn sleep(number: &AtomicU32, value: u32) {
        let forever = null::<timespec>();
        // SAFETY: the address is that of a live number of 32 bits.
        unsafe {
            syscall(SYS_futex, number.as_ptr(), FUTEX_WAIT | FUTEX_PRIVATE_FLAG, value, forever)
        };
    }

    /// Wakes up to `count` threads that sleep on the number.
    pub fn wake(number: &AtomicU32, count: usize) {
        let count = count.min(i32::MAX as usize) as i32;
        // SAFETY: as above.
        unsafe { syscall(SYS_futex, number.as_ptr(), FUTEX_WAKE | FUTEX_PRIVATE_FLAG, count) };
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
    use std::sync::{Condvar, Mutex};

    use crate::error::locked;

    static LOCK: Mutex<()> = Mutex::new(());
    static CHANGED: Condvar = Condvar::new();

    /// Sleeps until woken, or not at all if the number is another one. May return early.
    pub fn sleep(number: &AtomicU32, value: u32) {
        let lock = locked(&LOCK);
        if number.load(SeqCst) == value {
            drop(CHANGED.wait(lock));
        }
    }

    /// Wakes all threads that sleep, whatever number they sleep on.
    pub fn wake(_: &AtomicU32, _: usize) {
        drop(LOCK.lock());
        CHANGED.notify_all();
    }
}
