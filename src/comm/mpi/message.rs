//! Control messages: questions, answers and failures, in a fixed number of bytes.

use crate::comm::fault::shorten;
use crate::comm::{Fault, Liveness};

/// The bytes of a message on its way. Small enough that every library sends it without waiting for
/// the receiver.
pub const BYTES: usize = 1024;

const PING: u8 = 0;
const PONG: u8 = 1;
const FAILED: u8 = 2;
const TIMEOUT: u8 = 3;
const DIFFERS: u8 = 4;
const LEFT: u8 = 5;
/// Bytes of the kind and the sender.
const HEAD: usize = 5;
/// Bytes of a rank and its state in a report of a timeout.
const ENTRY: usize = 5;
/// The longest text; two of them fit.
const TEXT: usize = (BYTES - HEAD - 8) / 2;

/// How far a rank has come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Place {
    /// How many rounds of all ranks it has begun.
    pub rounds: u64,
    /// Whether it is waiting for others.
    pub waits: bool,
}

/// What ranks say to each other.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// Asks for a sign of life.
    Ping,
    /// A sign of life.
    Pong(Place),
    /// The sender closes the transport.
    Left,
    /// The sender has failed. Texts and lists that are too long are cut.
    Fault(Fault),
}

impl Message {
    /// The message's bytes.
    pub fn encode(&self, sender: usize) -> [u8; BYTES] {
        let mut writer = Writer { bytes: [0; BYTES], used: 0 };
        writer.put(&[self.kind()]);
        writer.number(sender);
        match self {
            Message::Ping | Message::Left => {}
            Message::Pong(place) => {
                writer.put(&place.rounds.to_le_bytes());
                writer.put(&[place.waits.into()]);
            }
            Message::Fault(Fault::Failed { text, .. } | Fault::System(text)) => writer.text(text),
            Message::Fault(Fault::Timeout { ranks, seconds }) => writer.timeout(ranks, *seconds),
            Message::Fault(Fault::Differs { rank, theirs, ours }) => {
                writer.number(*rank);
                writer.text(theirs);
                writer.text(ours);
            }
        }
        writer.bytes
    }

    fn kind(&self) -> u8 {
        match self {
            Message::Ping => PING,
            Message::Left => LEFT,
            Message::Pong(_) => PONG,
            Message::Fault(Fault::Failed { .. } | Fault::System(_)) => FAILED,
            Message::Fault(Fault::Timeout { .. }) => TIMEOUT,
            Message::Fault(Fault::Differs { .. }) => DIFFERS,
        }
    }

    /// The sender and its message as sent; a library's refusal arrives as the sender's failure.
    /// None for bytes that no rank has written.
    pub fn decode(bytes: &[u8]) -> Option<(usize, Message)> {
        let mut reader = Reader(bytes);
        let (kind, sender) = (reader.take(1)?[0], reader.number()?);
        let message = match kind {
            PING => Message::Ping,
            LEFT => Message::Left,
            PONG => {
                let rounds = u64::from_le_bytes(reader.take(8)?.try_into().ok()?);
                Message::Pong(Place { rounds, waits: reader.take(1)?[0] != 0 })
            }
            FAILED => Message::Fault(Fault::Failed { rank: sender, text: reader.text()? }),
            TIMEOUT => Message::Fault(reader.timeout()?),
            DIFFERS => {
                let (rank, theirs) = (reader.number()?, reader.text()?);
                Message::Fault(Fault::Differs { rank, theirs, ours: reader.text()? })
            }
            _ => return None,
        };
        Some((sender, message))
    }
}

struct Writer {
    bytes: [u8; BYTES],
    used: usize,
}

impl Writer {
    fn put(&mut self, bytes: &[u8]) {
        self.bytes[self.used..][..bytes.len()].copy_from_slice(bytes);
        self.used += bytes.len();
    }

    fn number(&mut self, number: usize) {
        self.put(&u32::try_from(number).expect("ranks and lengths are small").to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        let text = shorten(text, TEXT - 4);
        self.number(text.len());
        self.put(text.as_bytes());
    }

    fn timeout(&mut self, ranks: &[(usize, Liveness)], seconds: f64) {
        self.put(&seconds.to_le_bytes());
        let ranks = &ranks[..ranks.len().min((BYTES - self.used - 4) / ENTRY)];
        self.number(ranks.len());
        for (rank, state) in ranks {
            self.number(*rank);
            self.put(&[state.code()]);
        }
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(bytes)?;
        self.0 = tail;
        Some(head)
    }

    fn number(&mut self) -> Option<usize> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?) as usize)
    }

    fn text(&mut self) -> Option<String> {
        let length = self.number()?;
        Some(String::from_utf8_lossy(self.take(length)?).into_owned())
    }

    fn timeout(&mut self) -> Option<Fault> {
        let seconds = f64::from_le_bytes(self.take(8)?.try_into().ok()?);
        let entry = |reader: &mut Self| {
            let rank = reader.number()?;
            Some((rank, Liveness::of_code(reader.take(1)?[0])?))
        };
        let ranks = (0..self.number()?).map(|_| entry(self)).collect::<Option<_>>()?;
        Some(Fault::Timeout { ranks, seconds })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comes_back(message: Message) {
        assert_eq!(Message::decode(&message.encode(3)), Some((3, message)));
    }

    #[test]
    fn messages_come_back() {
        comes_back(Message::Ping);
        comes_back(Message::Left);
        comes_back(Message::Pong(Place { rounds: u64::MAX, waits: true }));
        comes_back(Message::Fault(Fault::Failed { rank: 3, text: "ValueError: ü".into() }));
        let ranks = Liveness::ALL.into_iter().enumerate().collect();
        comes_back(Message::Fault(Fault::Timeout { ranks, seconds: 2.5 }));
        let (theirs, ours) = ("broadcast".into(), "all_reduce".into());
        comes_back(Message::Fault(Fault::Differs { rank: 70_000, theirs, ours }));
    }

    #[test]
    fn long_texts_and_lists_are_cut() {
        let fault = Fault::Differs { rank: 0, theirs: "ü".repeat(999), ours: "ö".repeat(999) };
        let Some((1, Message::Fault(Fault::Differs { theirs, ours, .. }))) =
            Message::decode(&Message::Fault(fault).encode(1))
        else {
            panic!("not what was sent")
        };
        assert!(theirs.len() > 400 && theirs.chars().all(|c| c == 'ü'));
        assert!(ours.len() > 400 && ours.chars().all(|c| c == 'ö'));
        let ranks = (0..1000).map(|rank| (rank, Liveness::Dead)).collect();
        let Some((1, Message::Fault(Fault::Timeout { ranks, .. }))) =
            Message::decode(&Message::Fault(Fault::Timeout { ranks, seconds: 1.0 }).encode(1))
        else {
            panic!("not what was sent")
        };
        assert!(ranks.len() > 190 && ranks.last() == Some(&(ranks.len() - 1, Liveness::Dead)));
    }

    #[test]
    fn other_bytes_are_refused() {
        assert_eq!(Message::decode(&[]), None);
        assert_eq!(Message::decode(&[9; BYTES]), None);
        assert_eq!(Message::decode(&[FAILED, 0, 0, 0, 0, 255, 255, 255, 255]), None);
    }
}
