//! What ranks show each other before a round: which operation they have come with. The bytes of
//! small rounds travel with it.

use crate::comm::fault::shorten;
use crate::comm::{Fault, Round};

/// The bytes of a record.
pub const BYTES: usize = 272;
/// The most bytes of a round that travel with its record.
pub const INLINE: usize = 128;

/// Bytes that must be equal on all ranks.
const AGREED: usize = 21;
/// Where the step, the text's length and the text are.
const STEP: usize = AGREED;
const LENGTH: usize = STEP + 8;
const TEXT: usize = LENGTH + 1;
const PAYLOAD: usize = BYTES - INLINE;

/// How the bytes of a round go.
#[derive(Clone, Copy)]
pub enum Way {
    AllGather,
    AllToAll,
    Broadcast { root: usize },
    Pair,
}

/// Writes what this rank has come with: a round of so many bytes.
pub fn write(record: &mut [u8], round: &Round, way: Way, bytes: usize) {
    let (kind, root) = match way {
        Way::AllGather => (1, 0),
        Way::AllToAll => (2, 0),
        Way::Broadcast { root } => (3, root),
        Way::Pair => (4, 0),
    };
    record.fill(0);
    record[..8].copy_from_slice(&round.hash.to_le_bytes());
    record[8..16].copy_from_slice(&(bytes as u64).to_le_bytes());
    record[16..20].copy_from_slice(&(root as u32).to_le_bytes());
    record[20] = kind;
    record[STEP..LENGTH].copy_from_slice(&round.step.to_le_bytes());
    let text = shorten(round.what, PAYLOAD - TEXT);
    record[LENGTH] = text.len() as u8;
    record[TEXT..][..text.len()].copy_from_slice(text.as_bytes());
}

/// The bytes that travel with a record.
pub fn payload(record: &[u8]) -> &[u8] {
    &record[PAYLOAD..BYTES]
}

/// The bytes that travel with a record.
pub fn payload_mut(record: &mut [u8]) -> &mut [u8] {
    &mut record[PAYLOAD..BYTES]
}

/// The step of the round.
pub fn step(record: &[u8]) -> u64 {
    u64::from_le_bytes(record[STEP..LENGTH].try_into().expect("8 bytes"))
}

/// Refuses the round if `rank` has come with another operation.
pub fn compare(ours: &[u8], theirs: &[u8], rank: usize) -> Result<(), Fault> {
    if ours[..AGREED] == theirs[..AGREED] {
        return Ok(());
    }
    Err(Fault::Differs { rank, theirs: text(theirs), ours: text(ours) })
}

fn text(record: &[u8]) -> String {
    let length = usize::from(record[LENGTH]).min(PAYLOAD - TEXT);
    String::from_utf8_lossy(&record[TEXT..][..length]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(what: &str, hash: u64, way: Way, bytes: usize) -> [u8; BYTES] {
        let mut record = [7; BYTES];
        write(&mut record, &Round { what, hash, step: 5 }, way, bytes);
        record
    }

    #[test]
    fn any_difference_is_noticed() {
        let ours = record("sum", 1, Way::Broadcast { root: 1 }, 8);
        let others = [
            record("max", 2, Way::Broadcast { root: 1 }, 8),
            record("max", 1, Way::Broadcast { root: 0 }, 8),
            record("max", 1, Way::Broadcast { root: 1 }, 9),
            record("max", 1, Way::AllGather, 8),
        ];
        let differs = Fault::Differs { rank: 3, theirs: "max".into(), ours: "sum".into() };
        for theirs in others {
            assert_eq!(compare(&ours, &theirs, 3), Err(differs.clone()));
        }
        assert_eq!(compare(&ours, &record("any", 1, Way::Broadcast { root: 1 }, 8), 3), Ok(()));
    }

    #[test]
    fn long_texts_leave_the_payload_alone() {
        let long = record(&"ü".repeat(200), 1, Way::Pair, 8);
        assert!(payload(&long).iter().all(|byte| *byte == 0));
        assert_eq!((step(&long), text(&long)), (5, "ü".repeat(57)));
    }
}
