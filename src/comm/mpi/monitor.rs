//! Waiting for requests, and finding out why they do not complete.

use std::thread::{sleep, yield_now};
use std::time::{Duration, Instant};

use super::api::{Api, Handle};
use super::control::Control;
use super::lane::Lane;
use super::message::{Message, Place};
use super::peers::Peers;
use crate::comm::{Fault, Liveness};

/// How long a request is polled without a pause, but giving way to other threads: longer than a
/// small round takes if all come at about the same time.
const SPIN: Duration = Duration::from_micros(200);
/// The first pause between two polls; each is twice the one before.
const FIRST_PAUSE: Duration = Duration::from_micros(20);
/// The longest pause.
const LAST_PAUSE: Duration = Duration::from_micros(200);
/// How often the other processes are looked at.
const LOOK: Duration = Duration::from_millis(100);
/// The part of the timeout after which the others are asked for signs of life; the rest is theirs
/// to answer.
const PATIENCE: f64 = 0.7;

/// The rank that a request waits for; none if for all.
pub type Awaited = Option<usize>;

/// What a rank knows of the others, and how it waits for them.
pub struct Monitor<H> {
    pub(super) api: Api<H>,
    pub(super) control: Control<H>,
    pub(super) peers: Peers,
    /// How many rounds of all ranks this one has begun.
    pub(super) rounds: u64,
    pub(super) timeout: Duration,
}

/// One wait: when it began, and what has been done about it.
struct Vigil {
    begun: Instant,
    asked: Option<Instant>,
    looked: Instant,
    ended: Vec<(usize, Liveness)>,
}

impl Vigil {
    fn fault(&self, ranks: Vec<(usize, Liveness)>) -> Fault {
        Fault::Timeout { ranks, seconds: self.begun.elapsed().as_secs_f64() }
    }
}

impl<H: Handle> Monitor<H> {
    /// Waits for the request of `lane`.
    pub fn wait(&mut self, lane: &mut Lane<H>, awaited: Awaited) -> Result<(), Fault> {
        let begun = Instant::now();
        let mut vigil = Vigil { begun, asked: None, looked: begun, ended: Vec::new() };
        let mut pause = FIRST_PAUSE;
        while !lane.is_done(&self.api)? {
            if begun.elapsed() < SPIN {
                yield_now();
                continue;
            }
            self.listen(true)?;
            self.watch(&mut vigil, awaited)?;
            sleep(pause);
            pause = LAST_PAUSE.min(2 * pause);
        }
        Ok(())
    }

    /// Looks after the others while a request is not complete.
    fn watch(&mut self, vigil: &mut Vigil, awaited: Awaited) -> Result<(), Fault> {
        let now = Instant::now();
        if now - vigil.looked > LOOK {
            vigil.looked = now;
            self.look_for_ended(vigil, awaited)?;
        }
        match vigil.asked {
            None if now - vigil.begun > self.timeout.mul_f64(PATIENCE) => {
                vigil.asked = Some(now);
                self.control.ask(&self.api);
            }
            // A rank that was itself stopped for long comes here late, and waits for answers.
            Some(asked) if now - asked > self.timeout.mul_f64(1.0 - PATIENCE) => {
                return Err(self.verdict(vigil, awaited));
            }
            _ => {}
        }
        Ok(())
    }

    /// Does not wait any longer for ranks that have ended. Those seen for the first time may have
    /// sent all that was needed before: the request gets another chance to complete.
    fn look_for_ended(&self, vigil: &mut Vigil, awaited: Awaited) -> Result<(), Fault> {
        let is_awaited = |rank: &usize| awaited.is_none_or(|one| one == *rank);
        let ended = |rank| Some((rank, self.ended(rank)?));
        let ended: Vec<_> = self.others().filter(is_awaited).filter_map(ended).collect();
        if !ended.is_empty() && ended == vigil.ended {
            return Err(vigil.fault(ended));
        }
        vigil.ended = ended;
        Ok(())
    }

    /// Why a rank will never come, if so.
    fn ended(&self, rank: usize) -> Option<Liveness> {
        let gone = self.control.has_left(rank).then_some(Liveness::Gone);
        gone.or_else(|| self.peers.state(rank).filter(|state| *state == Liveness::Dead))
    }

    /// Takes all control messages that have arrived.
    ///
    /// # Errors
    /// The fault that another rank has announced.
    pub fn listen(&mut self, waits: bool) -> Result<(), Fault> {
        self.control.listen(&self.api, Place { rounds: self.rounds, waits })
    }

    /// Tells all others that this rank fails or leaves.
    pub fn announce(&mut self, message: Message) {
        self.control.announce(&self.api, &message);
    }

    /// Who is to blame: ranks that cannot come, else ranks that are alive and elsewhere, else those
    /// that wait for somebody else.
    fn verdict(&self, vigil: &Vigil, awaited: Awaited) -> Fault {
        let lost: Vec<_> = self.others().filter_map(|r| Some((r, self.lost(r)?))).collect();
        let late = |waits| {
            let ranks = self.others().filter(move |rank| self.is_late(*rank, waits, awaited));
            ranks.map(|rank| (rank, Liveness::Away)).collect::<Vec<_>>()
        };
        let blamed = [lost, late(false), late(true)].into_iter().find(|ranks| !ranks.is_empty());
        vigil.fault(blamed.unwrap_or_default())
    }

    /// Why a rank cannot come, if so.
    fn lost(&self, rank: usize) -> Option<Liveness> {
        let silent = self.control.answer(rank).is_none().then_some(Liveness::Silent);
        self.ended(rank).or_else(|| self.peers.state(rank)).or(silent)
    }

    /// Whether a rank that has answered is behind, or awaited; `waits` if it waits for others.
    fn is_late(&self, rank: usize, waits: bool, awaited: Awaited) -> bool {
        let rounds = |rank| self.control.answer(rank).map(|place| place.rounds);
        let front = self.others().filter_map(rounds).fold(self.rounds, u64::max);
        self.control.answer(rank).is_some_and(|place| {
            place.waits == waits && (awaited == Some(rank) || place.rounds < front)
        })
    }

    fn others(&self) -> impl Iterator<Item = usize> {
        let Api { rank, size, .. } = self.api;
        (0..size).filter(move |other| *other != rank)
    }
}
