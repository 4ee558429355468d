//! The processes of the other ranks, as far as they run on this machine.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::comm::Liveness;
use crate::comm::process::{namespace, state, status};

/// The bytes that describe a process to the others.
pub const IDENTITY: usize = 24;

/// The number and the start of each rank's process; none for those that cannot be looked at.
pub struct Peers(Vec<Option<(u32, u64)>>);

impl Peers {
    /// Of which nothing is known.
    pub fn unknown(size: usize) -> Self {
        Peers(vec![None; size])
    }

    /// Reads the [`identity`] of each rank.
    pub fn new(identities: &[u8]) -> Self {
        let here = machine();
        let process = |bytes: &[u8]| {
            let [machine, pid, started] = [0, 8, 16].map(|at| number(&bytes[at..at + 8]));
            (machine == here && started != 0).then_some((pid as u32, started))
        };
        Peers(identities.chunks_exact(IDENTITY).map(process).collect())
    }

    /// Whether the rank's process has ended or is stopped, if that can be seen.
    pub fn state(&self, rank: usize) -> Option<Liveness> {
        let (pid, started) = self.0[rank]?;
        Some(state(pid, started)).filter(|state| *state != Liveness::Away)
    }
}

/// What this process tells the others of itself.
pub fn identity() -> [u8; IDENTITY] {
    let pid = std::process::id();
    let started = status(pid).map_or(0, |(_, started)| started);
    let mut bytes = [0; IDENTITY];
    for (place, value) in bytes.chunks_exact_mut(8).zip([machine(), pid.into(), started]) {
        place.copy_from_slice(&value.to_le_bytes());
    }
    bytes
}

/// The start of the machine and the name space of process numbers: numbers mean the same processes
/// where both are equal.
fn machine() -> u64 {
    let mut hasher = DefaultHasher::new();
    fs::read("/proc/sys/kernel/random/boot_id").ok().hash(&mut hasher);
    namespace().ok().hash(&mut hasher);
    hasher.finish()
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_processes_of_this_machine_are_looked_at() {
        let mut bytes = identity();
        assert_eq!(Peers::new(&bytes).state(0), None, "this one runs");
        bytes[16] ^= 1;
        assert_eq!(
            Peers::new(&bytes).state(0),
            Some(Liveness::Dead),
            "it was started at another time"
        );
        bytes[0] ^= 1;
        assert_eq!(Peers::new(&bytes).state(0), None, "on another machine");
    }
}
