//! What the system knows of the other ranks' processes.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use crate::comm::{Liveness, process};

/// Whose process a rank is. Process numbers are used again, so the time of the start is part of it.
#[repr(C)]
pub struct Identity {
    pid: AtomicU32,
    has_left: AtomicBool,
    started: AtomicU64,
}

impl Identity {
    /// Says that this process is the rank.
    ///
    /// # Errors
    /// In words, if another one is, or if the system does not tell about processes.
    pub fn claim(&self, rank: usize) -> Result<(), String> {
        let holder = self.pid.load(Relaxed);
        if holder != 0 {
            let state = self.state();
            return Err(format!("rank {rank} is taken by process {holder} ({state})"));
        }
        let pid = std::process::id();
        let (_, started) = process::status(pid).map_err(|e| format!("/proc/{pid}/stat: {e}"))?;
        self.started.store(started, Relaxed);
        self.pid.store(pid, Release);
        Ok(())
    }

    /// Says that the rank has closed the group.
    pub fn leave(&self) {
        self.has_left.store(true, Release);
    }

    /// What is known of the rank's process. One that cannot be looked at counts as running.
    pub fn state(&self) -> Liveness {
        let pid = self.pid.load(Acquire);
        if pid == 0 {
            return Liveness::Away;
        }
        if self.has_left.load(Acquire) {
            return Liveness::Gone;
        }
        process::state(pid, self.started.load(Relaxed))
    }

    /// Whether the rank has come and neither left nor ended.
    pub fn is_there(&self) -> bool {
        self.pid.load(Acquire) != 0 && self.ended().is_none()
    }

    /// [`Identity::state`] if the rank will never come.
    pub fn ended(&self) -> Option<Liveness> {
        Some(self.state()).filter(|state| matches!(state, Liveness::Dead | Liveness::Gone))
    }
}

#[cfg(test)]
impl Identity {
    /// Says that the rank is of a process which has ended, whose number is used again.
    pub fn forge_dead(&self) {
        self.started.fetch_add(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::thread::sleep;
    use std::time::{Duration, Instant};

    use super::*;

    /// Waits until the state is this one.
    fn expect(identity: &Identity, state: Liveness) {
        let begun = Instant::now();
        while identity.state() != state {
            assert!(begun.elapsed() < Duration::from_secs(20), "{}", identity.state());
            sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn processes_are_followed_to_their_end() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let (_, started) = process::status(child.id()).unwrap();
        let of = |started: u64| Identity {
            pid: child.id().into(),
            has_left: false.into(),
            started: started.into(),
        };
        let (its, anothers) = (of(started), of(started + 1));
        assert_eq!([its.state(), anothers.state()], [Liveness::Away, Liveness::Dead]);
        // SAFETY: the child is not waited for yet, so that its number is its own.
        let signal = |signal| unsafe { libc::kill(child.id() as i32, signal) };
        signal(libc::SIGSTOP);
        expect(&its, Liveness::Stopped);
        signal(libc::SIGKILL);
        expect(&its, Liveness::Dead);
        child.wait().unwrap();
        assert_eq!(its.state(), Liveness::Dead);
        its.leave();
        assert_eq!(its.state(), Liveness::Gone);
    }
}
