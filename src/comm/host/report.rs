//! The fault that ends a group, in shared memory for all its ranks.

use std::cell::UnsafeCell;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Acquire, SeqCst};

use super::described::WORDS;
use super::segment::MAX_RANKS;
use super::text::Text;
use crate::comm::{Fault, Liveness};

/// The state of a report that nobody has begun. While a rank writes it, the state is that rank's
/// number + 1.
const NONE: u32 = 0;
/// The state of a report that is there.
const COMPLETE: u32 = u32::MAX;

/// The first fault that a rank has reported.
#[repr(C)]
pub struct Report {
    state: AtomicU32,
    story: UnsafeCell<Story>,
}

/// What others know of a fault.
pub enum News {
    /// There is none.
    None,
    /// This rank writes one.
    Coming(usize),
    /// It is this for the asking rank.
    Fault(Fault),
}

/// A fault, and who has met it.
#[derive(Clone, Copy)]
#[repr(C)]
struct Story {
    by: u32,
    kind: Kind,
}

#[derive(Clone, Copy)]
#[repr(C, u32)]
#[expect(clippy::large_enum_variant, reason = "no process can follow another's pointers")]
enum Kind {
    Failed { text: Text<2048> },
    Differs { from: u32, theirs: Text<WORDS>, ours: Text<WORDS> },
    Timeout { states: [u8; MAX_RANKS], seconds: f64 },
}

/// A state in shared memory is its code + 1, and 0 if a rank is not named.
fn coded(state: Liveness) -> u8 {
    state.code() + 1
}

fn decoded(code: u8) -> Option<Liveness> {
    Liveness::of_code(code.checked_sub(1)?)
}

impl Report {
    /// Reports a fault that rank `by` has met, unless there is one already.
    pub fn write(&self, by: usize, fault: &Fault) {
        if self.begin(by) {
            // SAFETY: one rank alone gets here, and nobody reads the story before it is complete.
            unsafe { *self.story.get() = Story { by: by as u32, kind: Kind::new(fault) } };
            self.state.store(COMPLETE, SeqCst);
        }
    }

    /// Whether rank `by` is the first to report.
    pub(super) fn begin(&self, by: usize) -> bool {
        self.state.compare_exchange(NONE, by as u32 + 1, AcqRel, Acquire).is_ok()
    }

    /// What rank `me` gets to know.
    pub fn read(&self, me: usize) -> News {
        match self.state.load(SeqCst) {
            NONE => News::None,
            // SAFETY: a complete story is never written again.
            COMPLETE => News::Fault(unsafe { *self.story.get() }.fault(me)),
            writer => News::Coming(writer as usize - 1),
        }
    }
}

impl Kind {
    fn new(fault: &Fault) -> Self {
        match fault {
            Fault::Failed { text, .. } | Fault::System(text) => {
                Kind::Failed { text: text.as_str().into() }
            }
            Fault::Differs { rank, theirs, ours } => Kind::Differs {
                from: *rank as u32,
                theirs: theirs.as_str().into(),
                ours: ours.as_str().into(),
            },
            Fault::Timeout { ranks, seconds } => {
                let mut states = [0; MAX_RANKS];
                ranks.iter().for_each(|(rank, state)| states[*rank] = coded(*state));
                Kind::Timeout { states, seconds: *seconds }
            }
        }
    }
}

impl Story {
    /// The fault as rank `me` sees it.
    fn fault(&self, me: usize) -> Fault {
        let rank = self.by as usize;
        let fault = match &self.kind {
            Kind::Failed { text } => Fault::Failed { rank, text: text.to_string() },
            Kind::Differs { from, theirs, ours } => Fault::Differs {
                rank: *from as usize,
                theirs: theirs.to_string(),
                ours: ours.to_string(),
            },
            Kind::Timeout { states, seconds } => {
                let named = |(rank, code): (usize, &u8)| decoded(*code).map(|state| (rank, state));
                let ranks = states.iter().enumerate().filter_map(named).collect();
                Fault::Timeout { ranks, seconds: *seconds }
            }
        };
        fault.seen(rank, me)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What rank `me` reads of a fault that rank 1 has reported.
    fn read(fault: &Fault, me: usize) -> Fault {
        Story { by: 1, kind: Kind::new(fault) }.fault(me)
    }

    #[test]
    fn every_state_of_a_rank_is_told() {
        let ranks: Vec<_> =
            Liveness::ALL.into_iter().enumerate().map(|(r, s)| (r + 2, s)).collect();
        let fault = Fault::Timeout { ranks, seconds: 2.0 };
        assert_eq!(read(&fault, 0), fault);
    }

    #[test]
    fn the_first_report_stays() {
        // SAFETY: zeros are a report that nobody has begun.
        let report: Report = unsafe { std::mem::zeroed() };
        assert!(matches!(report.read(0), News::None));
        for text in ["first", "second"] {
            report.write(1, &Fault::System(text.into()));
        }
        let News::Fault(fault) = report.read(0) else { panic!("nothing is reported") };
        assert_eq!(fault, Fault::Failed { rank: 1, text: "first".into() });
    }
}
