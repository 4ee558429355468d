//! What a worker does when the next task of its part is not ready, or when it is asked for tasks.

use super::{Acquire, NONE, Relaxed, Release, Worker};

/// How many tasks that are not ready a worker skips: few enough to stay close to the recorded
/// order, which hardware predicts well, yet enough to have work while other workers lag.
const AHEAD: u32 = 64;
/// How many seats it searches for a task to offer.
const SEARCH: u32 = 1024;
/// Marks the counter of a task that was offered to others.
const GIVEN: u32 = u32::MAX;

impl Worker<'_> {
    /// Goes on with the next ready task, skipping up to `AHEAD` that are not ready.
    fn skip(&mut self) -> Option<u32> {
        loop {
            let seat = self.advance();
            if seat.is_some() || self.rest.is_empty() {
                return seat;
            }
            match self.crew.waits[self.rest.start as usize].load(Relaxed) {
                GIVEN => {}
                _ if self.skipped < AHEAD => self.skipped += 1,
                _ => return None,
            }
            self.rest.start = self.crew.tasks.last(self.rest.start) + 1;
        }
    }

    /// Finds a task when the next one is not ready; NONE when all are done.
    #[cold]
    pub(super) fn find(&mut self) -> u32 {
        self.receive();
        match self.ready() {
            Some(seat) => seat,
            None => match self.crew.take(self.number) {
                NONE => self.wait(),
                back => self.alone(back),
            },
        }
    }

    /// A ready task of its parts.
    fn ready(&mut self) -> Option<u32> {
        match self.late.pop() {
            Some(seat) => Some(self.alone(seat)),
            None => self.skip(),
        }
    }

    /// Waits for mail, or for a task to steal; NONE when all are done.
    fn wait(&mut self) -> u32 {
        self.patience.begin();
        // A waiting worker has reported everything, so the count reaches zero.
        self.crew.left.0.fetch_sub(std::mem::take(&mut self.done), Release);
        while self.crew.left.0.load(Acquire) != 0 {
            self.receive();
            if let Some(seat) = self.ready().or_else(|| self.ask()) {
                return seat;
            }
            self.patience.wait();
        }
        NONE
    }

    /// Asks the others for tasks, or takes what they offer, if it has waited long enough.
    fn ask(&mut self) -> Option<u32> {
        let (crew, workers) = (self.crew, self.crew.workers);
        if self.patience.asks() {
            self.heard = crew.requests.0.fetch_add(1, Relaxed) + 1;
        }
        if self.patience.adopts() {
            self.adopt();
        }
        if !self.patience.has_asked() {
            return None;
        }
        let others = (1..workers).map(|k| crew.take((self.number + k) % workers));
        let seat = others.into_iter().find(|&seat| seat != NONE)?;
        self.patience.end();
        Some(self.alone(seat))
    }

    /// Adopts a part whose worker has not arrived, if there is one.
    fn adopt(&mut self) {
        let (crew, worker) = (self.crew, self.number);
        let claimed = (0..crew.workers).find_map(|part| crew.claim(part, worker));
        let Some(seats) = claimed else { return };
        let mut past = std::mem::replace(&mut self.rest, seats);
        while let Some(seat) = past.next() {
            match crew.waits[seat as usize].load(Relaxed) {
                0 => self.late.push(seat),
                GIVEN => {}
                _ => self.skipped += 1,
            }
            past.start = self.crew.tasks.last(seat) + 1;
        }
    }

    /// Offers a ready task to the workers that have asked.
    #[cold]
    pub(super) fn offer(&mut self) {
        self.heard = self.crew.requests.0.load(Relaxed);
        self.receive();
        let offer = &self.crew.offers[self.number].0;
        if offer.load(Relaxed) == NONE {
            let spare = self.late.pop().or_else(|| self.spare());
            spare.into_iter().for_each(|seat| offer.store(seat, Release));
        }
    }

    /// Takes a ready task out of the rest of its part.
    fn spare(&mut self) -> Option<u32> {
        let waits = |seat: &u32| &self.crew.waits[*seat as usize];
        let mut near = self.rest.clone().skip(1).take(SEARCH as usize);
        let ready = near.find(|seat| waits(seat).load(Relaxed) == 0)?;
        waits(&ready).store(GIVEN, Relaxed);
        Some(ready)
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
