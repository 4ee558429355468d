//! Waiting for other ranks: a few looks, then sleep, with an eye on whether they can still come.

use std::ops::Range;
use std::time::{Duration, Instant};

use super::Host;
use super::report::News;
use super::signal::Signal;
use crate::comm::{Fault, Liveness, Transport};

/// Between two looks at the processes that a rank waits for, and the longest that a report may stay
/// unseen if it comes just before a rank falls asleep.
const SLICE: Duration = Duration::from_millis(50);

/// What a rank waits for: that the numbers of others reach one.
pub struct Wanted<'a> {
    /// Whose.
    pub ranks: Range<usize>,
    /// Which.
    pub number: u32,
    /// Where a rank's number is.
    pub signal: &'a dyn Fn(usize) -> &'a Signal,
    /// Compares the operation of a rank that has come with this one's.
    pub agree: &'a dyn Fn(usize) -> Result<(), Fault>,
}

impl Wanted<'_> {
    fn is_missing(&self, rank: usize) -> bool {
        !(self.signal)(rank).has_reached(self.number)
    }

    fn missing(&self) -> impl Iterator<Item = usize> {
        self.ranks.clone().filter(|rank| self.is_missing(*rank))
    }

    /// The first rank that has not come, if those that have agree.
    fn first(&self) -> Result<Option<usize>, Fault> {
        let mut first = None;
        for rank in self.ranks.clone() {
            if self.is_missing(rank) {
                first = first.or(Some(rank));
            } else {
                (self.agree)(rank)?;
            }
        }
        Ok(first)
    }
}

impl Host {
    /// Waits until all have come. A report counts even then: others may have waited for this rank in
    /// vain.
    ///
    /// # Errors
    /// [`Fault`] if they have come with something else, cannot come any more, or do not come within
    /// the timeout, and what others report meanwhile.
    pub(super) fn wait(&self, wanted: &Wanted) -> Result<(), Fault> {
        let (mut begun, mut next) = (None, SLICE);
        while let Some(rank) = wanted.first()? {
            let signal = (wanted.signal)(rank);
            if signal.spin(wanted.number, self.pauses) {
                continue;
            }
            self.segment.member(self.rank).set_awaited(Some(rank));
            let waited = begun.get_or_insert_with(Instant::now).elapsed();
            self.heed(wanted, waited)?;
            if waited >= self.timeout {
                self.overdue(wanted, waited)?;
            } else if waited >= next {
                self.look(wanted, waited)?;
                next = waited + SLICE;
            }
            signal.sleep(wanted.number, self.timeout.saturating_sub(waited).min(SLICE));
        }
        if begun.is_some() {
            self.segment.member(self.rank).set_awaited(None);
        }
        self.heed(wanted, Duration::ZERO)
    }

    /// Fails if a rank has reported a fault. Those that have come are compared once more first: one
    /// that came after the last look may be what the report is about.
    fn heed(&self, wanted: &Wanted, waited: Duration) -> Result<(), Fault> {
        match self.segment.report().read(self.rank) {
            News::None => Ok(()),
            News::Fault(fault) => wanted.first().and(Err(fault)),
            News::Coming(rank) => {
                self.ended(rank).map_or(Ok(()), |s| timeout(vec![(rank, s)], waited))
            }
        }
    }

    /// Fails if a rank that is waited for has ended, unless it came before.
    fn look(&self, wanted: &Wanted, waited: Duration) -> Result<(), Fault> {
        let ended = |rank| Some((rank, self.ended(rank)?));
        let mut ended: Vec<_> = wanted.missing().filter_map(ended).collect();
        ended.retain(|(rank, _)| wanted.is_missing(*rank));
        timeout(ended, waited)
    }

    /// Fails if ranks are still missing, and names those that keep them.
    fn overdue(&self, wanted: &Wanted, waited: Duration) -> Result<(), Fault> {
        let mut ranks: Vec<_> = wanted.missing().map(|rank| self.cause(rank)).collect();
        ranks.sort_by_key(|(rank, _)| *rank);
        ranks.dedup();
        timeout(ranks, waited)
    }

    /// The rank for which a missing one waits itself, and so on; ranks that wait for each other in a
    /// circle have not come.
    fn cause(&self, missing: usize) -> (usize, Liveness) {
        let mut rank = missing;
        for _ in 0..self.size() {
            let member = self.segment.member(rank);
            match (member.identity.state(), member.awaited()) {
                (Liveness::Away, Some(next)) => rank = next,
                (state, _) => return (rank, state),
            }
        }
        (missing, Liveness::Away)
    }

    fn ended(&self, rank: usize) -> Option<Liveness> {
        self.segment.member(rank).identity.ended()
    }
}

/// Fails if there are ranks that did not come.
fn timeout(ranks: Vec<(usize, Liveness)>, waited: Duration) -> Result<(), Fault> {
    if ranks.is_empty() {
        return Ok(());
    }
    Err(Fault::Timeout { ranks, seconds: waited.as_secs_f64() })
}
