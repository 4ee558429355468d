//! What ranks say to each other beside the rounds: signs of life, and failures.
//!
//! Nothing here waits for a message to be taken, as its receiver may be dead: its memory stays with
//! the library until it is.

use std::thread::sleep;
use std::time::{Duration, Instant};

use super::api::{Api, Handle};
use super::lane::{Channel, Lane, Transfer};
use super::message::{BYTES, Message, Place};
use crate::comm::Fault;

/// How long the last words of a rank are helped on their way.
const GRACE: Duration = Duration::from_millis(50);

/// The control messages of a rank.
pub struct Control<H> {
    sending: Vec<Lane<H>>,
    hearing: Option<Lane<H>>,
    answers: Vec<Option<Place>>,
    has_left: Vec<bool>,
    fault: Option<Fault>,
}

impl<H: Handle> Control<H> {
    /// For so many ranks.
    pub fn new(size: usize) -> Self {
        let (answers, has_left) = (vec![None; size], vec![false; size]);
        Control { sending: Vec::new(), hearing: None, answers, has_left, fault: None }
    }

    /// Sends a message. One that the library refuses is like one that never arrives: its receiver
    /// is as good as dead.
    fn tell(&mut self, api: &Api<H>, to: usize, message: &Message) {
        let mut lane = Lane::new();
        lane.fill(BYTES).copy_from_slice(&message.encode(api.rank));
        if lane.start(api, Transfer::Send { to, on: Channel::Control }).is_ok() {
            self.sending.push(lane);
        }
    }

    fn tell_all(&mut self, api: &Api<H>, message: &Message) {
        (0..api.size).filter(|to| *to != api.rank).for_each(|to| self.tell(api, to, message));
    }

    /// Asks all others for signs of life.
    pub fn ask(&mut self, api: &Api<H>) {
        self.answers.fill(None);
        self.tell_all(api, &Message::Ping);
    }

    /// How far a rank has come, if it has answered.
    pub fn answer(&self, rank: usize) -> Option<Place> {
        self.answers[rank]
    }

    /// Whether a rank has closed its transport.
    pub fn has_left(&self, rank: usize) -> bool {
        self.has_left[rank]
    }

    /// Tells all others that this rank fails or leaves.
    pub fn announce(&mut self, api: &Api<H>, message: &Message) {
        self.tell_all(api, message);
        let begun = Instant::now();
        while self.push(api) && begun.elapsed() < GRACE {
            sleep(Duration::from_micros(100));
        }
    }

    /// Lets the library work on the messages on their way; whether there are any.
    pub fn push(&mut self, api: &Api<H>) -> bool {
        self.sending.retain_mut(|lane| matches!(lane.is_done(api), Ok(false)));
        !self.sending.is_empty()
    }

    /// Takes all messages that have arrived, and answers questions: `ours` is how far this rank has
    /// come.
    ///
    /// # Errors
    /// The fault that another rank has announced.
    pub fn listen(&mut self, api: &Api<H>, ours: Place) -> Result<(), Fault> {
        self.push(api);
        while let Some((sender, message)) = self.next(api)? {
            match message {
                Message::Ping => self.tell(api, sender, &Message::Pong(ours)),
                Message::Pong(place) => self.answers[sender] = Some(place),
                Message::Left => self.has_left[sender] = true,
                Message::Fault(fault) => {
                    let fault = fault.seen(sender, api.rank);
                    self.fault = Some(fault.clone());
                    return Err(fault);
                }
            }
        }
        Ok(())
    }

    /// Whether the fault is one that another rank has announced to all.
    pub fn has_heard(&self, fault: &Fault) -> bool {
        self.fault.as_ref() == Some(fault)
    }

    /// The next message, if one has arrived.
    fn next(&mut self, api: &Api<H>) -> Result<Option<(usize, Message)>, Fault> {
        if self.hearing.is_none() && !api.has_control()? {
            return Ok(None);
        }
        let mut lane = match self.hearing.take() {
            Some(lane) => lane,
            None => hear(api)?,
        };
        if !lane.is_done(api)? {
            self.hearing = Some(lane);
            return Ok(None);
        }
        let message = Message::decode(lane.received()).filter(|(sender, _)| *sender < api.size);
        let unknown = || Fault::System("MPI: a control message of another version".into());
        Ok(Some(message.ok_or_else(unknown)?))
    }
}

/// Begins to receive the message that has arrived.
fn hear<H: Handle>(api: &Api<H>) -> Result<Lane<H>, Fault> {
    let mut lane = Lane::new();
    lane.start(api, Transfer::Receive { bytes: BYTES, from: None, on: Channel::Control })?;
    Ok(lane)
}
