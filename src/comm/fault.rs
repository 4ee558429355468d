//! What a transport offers, and what can go wrong with it.

use std::fmt;
use std::time::Duration;

/// What is known of a rank that did not come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Liveness {
    /// Its process has ended.
    Dead,
    /// It has closed the group.
    Gone,
    /// Its process is stopped.
    Stopped,
    /// It does not answer: its process has ended or is stopped.
    Silent,
    /// Its process runs, but has not come to this operation.
    Away,
}

impl Liveness {
    /// All of them; processes tell each other their places here.
    pub const ALL: [Liveness; 5] =
        [Liveness::Dead, Liveness::Gone, Liveness::Stopped, Liveness::Silent, Liveness::Away];

    /// Its place among all.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// That of a place, if there is one.
    pub fn of_code(code: u8) -> Option<Liveness> {
        Self::ALL.get(usize::from(code)).copied()
    }
}

impl fmt::Display for Liveness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Liveness::Dead => "dead",
            Liveness::Gone => "gone: it has closed the group",
            Liveness::Stopped => "stopped",
            Liveness::Silent => "dead or stopped",
            Liveness::Away => "not there yet",
        })
    }
}

/// What went wrong with an exchange.
#[derive(Clone, PartialEq, Debug)]
pub enum Fault {
    /// These ranks did not come within the timeout.
    Timeout {
        /// Who, and what is known of them.
        ranks: Vec<(usize, Liveness)>,
        /// How long this rank waited.
        seconds: f64,
    },
    /// A rank has reported an error of its own.
    Failed {
        /// Who.
        rank: usize,
        /// Its error.
        text: String,
    },
    /// A rank has come with another operation.
    Differs {
        /// Who.
        rank: usize,
        /// What that rank was about to do.
        theirs: String,
        /// What this rank was about to do.
        ours: String,
    },
    /// The library or the system has refused.
    System(String),
}

impl Fault {
    /// The fault that rank `by` has met, as rank `me` sees it: one that the others have waited for
    /// in vain, such as one that was stopped for a while, gets to know that.
    pub fn seen(self, by: usize, me: usize) -> Fault {
        let failed = |text| Fault::Failed { rank: by, text };
        match self {
            _ if by == me => self,
            Fault::Timeout { ref ranks, seconds } => {
                let missed = ranks.iter().find(|(rank, _)| *rank == me);
                let text = |(rank, state): &(usize, Liveness)| {
                    failed(format!("it waited {seconds:.1} s for rank {rank} ({state})"))
                };
                missed.map(text).unwrap_or(self)
            }
            Fault::Differs { rank, theirs, ours } if rank == me => {
                Fault::Differs { rank: by, theirs: ours, ours: theirs }
            }
            Fault::Differs { rank, theirs, ours } => {
                failed(format!("it came with {ours}, rank {rank} with {theirs}"))
            }
            Fault::System(text) => failed(text),
            Fault::Failed { .. } => self,
        }
    }
}

/// The longest beginning of `text` that has at most `bytes` bytes.
#[cfg(target_os = "linux")]
pub fn shorten(text: &str, bytes: usize) -> &str {
    let mut ends = (0..=bytes.min(text.len())).rev();
    &text[..ends.find(|end| text.is_char_boundary(*end)).unwrap_or(0)]
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Timeout { ranks, seconds } if ranks.is_empty() => {
                write!(f, "all ranks are there, and nothing arrives ({seconds:.1} s)")
            }
            Fault::Timeout { ranks, seconds } => {
                let named = |(rank, state): &(usize, Liveness)| format!("rank {rank} is {state}");
                let named: Vec<String> = ranks.iter().map(named).collect();
                write!(f, "{} ({seconds:.1} s)", named.join(", "))
            }
            Fault::Failed { rank, text } => write!(f, "rank {rank} failed: {text}"),
            Fault::Differs { rank, theirs, ours } => {
                write!(f, "rank {rank} came with {theirs}, this one with {ours}")
            }
            Fault::System(text) => f.write_str(text),
        }
    }
}

/// What a rank is about to do; a round in which ranks differ is refused on all of them.
#[derive(Clone, Copy, Debug)]
pub struct Round<'a> {
    /// In words.
    pub what: &'a str,
    /// Equal only if it is the same.
    pub hash: u64,
    /// The [code](super::Signature::code) of the recorded step in which it does that, or 0.
    pub step: u64,
}

/// How bytes get from rank to rank. Calls block, at most for the timeout; after a fault, each
/// further one returns that fault again.
pub trait Transport: Send {
    /// This process's number.
    fn rank(&self) -> usize;

    /// The number of processes.
    fn size(&self) -> usize;

    /// Every rank gives equally many bytes; `all` receives those of rank 0, 1, ... in order.
    ///
    /// # Errors
    /// [`Fault`].
    fn all_gather(&mut self, round: &Round, mine: &[u8], all: &mut [u8]) -> Result<(), Fault>;

    /// Both have as many equal parts as there are ranks: part r of `send` goes to rank r, and part
    /// r of `received` comes from rank r.
    ///
    /// # Errors
    /// [`Fault`].
    fn all_to_all(&mut self, round: &Round, send: &[u8], received: &mut [u8]) -> Result<(), Fault>;

    /// The root's bytes reach all.
    ///
    /// # Errors
    /// [`Fault`].
    fn broadcast(&mut self, round: &Round, bytes: &mut [u8], root: usize) -> Result<(), Fault>;

    /// Bytes for another rank; first in, first out for each pair.
    ///
    /// # Errors
    /// [`Fault`].
    fn send(&mut self, round: &Round, bytes: &[u8], to: usize) -> Result<(), Fault>;

    /// Bytes from another rank.
    ///
    /// # Errors
    /// [`Fault`].
    fn receive(&mut self, round: &Round, bytes: &mut [u8], from: usize) -> Result<(), Fault>;

    /// The steps of all ranks in the last round of all.
    fn steps(&self) -> Vec<u64>;

    /// Tells the others that this rank has failed; they leave with [`Fault::Failed`].
    fn fail(&mut self, text: &str);

    /// Sets the longest that a call waits for others.
    fn set_timeout(&mut self, timeout: Duration);

    /// Answers others' questions and notices their failures while there is nothing to exchange.
    ///
    /// # Errors
    /// [`Fault`].
    fn idle(&mut self) -> Result<(), Fault> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_missed_gets_to_know() {
        let fault = Fault::Timeout { ranks: vec![(2, Liveness::Stopped)], seconds: 2.0 };
        assert_eq!(fault.clone().seen(1, 0), fault);
        let text = "it waited 2.0 s for rank 2 (stopped)".into();
        assert_eq!(fault.seen(1, 2), Fault::Failed { rank: 1, text });
    }

    #[test]
    fn both_who_differ_get_to_know_the_others_operation() {
        let fault = Fault::Differs { rank: 2, theirs: "b".into(), ours: "a".into() };
        let turned = Fault::Differs { rank: 1, theirs: "a".into(), ours: "b".into() };
        assert_eq!(fault.clone().seen(1, 2), turned);
        let text = "it came with a, rank 2 with b".into();
        assert_eq!(fault.seen(1, 0), Fault::Failed { rank: 1, text });
    }

    #[test]
    fn codes_come_back() {
        for (code, state) in (0..).zip(Liveness::ALL) {
            assert_eq!((state.code(), Liveness::of_code(code)), (code, Some(state)));
        }
        assert_eq!(Liveness::of_code(5), None);
    }

    #[test]
    fn texts_are_cut_between_characters() {
        let cut = |text| shorten(text, 5);
        assert_eq!(["", "abc", "abcdef", "abcdé"].map(cut), ["", "abc", "abcde", "abcd"]);
    }
}
