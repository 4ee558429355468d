//! Files that nobody vouches for.

use proptest::prelude::*;
use proptest::sample::Index;

use super::*;
use crate::error::Error;
use crate::graph::{Checksum, reseal};
use crate::step::format::{CHECKSUM, PREFIX};

fn said(bytes: &[u8]) -> String {
    match read(bytes) {
        Err(Error::Checkpoint { message, .. }) => message,
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("the file is sound"),
    }
}

#[test]
fn files_of_another_kind_or_version_are_refused() {
    let file = trained().written();
    assert_eq!(said(b"singa"), "it is too short for a step");
    assert_eq!(said(&[0; 100]), "it is no step");
    let mut other = file.clone();
    other[8] = 1;
    assert_eq!(said(&other), "it has version 1, and this is version 2");
    let longer = [&file[..], &[0]].concat();
    assert!(said(&longer).starts_with("it is truncated or damaged"));
    let shorter = &mut &file[..file.len() - 1];
    let claimed = Step::read(engine::host(), shorter, file.len() as u64).map(drop);
    assert!(
        matches!(claimed, Err(Error::Checkpoint { message, .. }) if message == "it is truncated")
    );
}

#[test]
fn huge_lengths_are_refused_before_memory_is_taken() {
    for at in [16, 24, 32] {
        for length in [u64::MAX, u64::MAX / 2, 1 << 40] {
            let mut file = trained().written();
            file[at..at + 8].copy_from_slice(&length.to_le_bytes());
            assert!(said(&file).starts_with("it is truncated or damaged"));
        }
    }
}

/// The file with checksums that fit what it holds.
fn resealed(mut file: Vec<u8>, operations: usize, header: usize) -> Vec<u8> {
    let end = PREFIX + operations + header;
    reseal(&mut file[PREFIX..PREFIX + operations]);
    let start = PREFIX - CHECKSUM;
    let sum = Checksum::of(&[&file[..start], &file[PREFIX..end]].concat());
    file[start..PREFIX].copy_from_slice(&sum);
    file
}

fn word(file: &[u8], at: usize) -> usize {
    u64::from_le_bytes(file[at..at + 8].try_into().unwrap()) as usize
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn damaged_files_are_refused(
        flips in prop::collection::vec((any::<Index>(), 1..=255u8), 1..4),
        length in any::<Index>(),
    ) {
        let whole = trained().written();
        let mut damaged = whole.clone();
        flips.iter().for_each(|(at, bits)| *at.get_mut(&mut damaged) ^= bits);
        let is_refused = |bytes: &[u8]| matches!(read(bytes), Err(Error::Checkpoint { .. }));
        prop_assert!(damaged == whole || is_refused(&damaged));
        prop_assert!(is_refused(&whole[..length.index(whole.len())]));
    }

    /// Behind checksums that fit, what is damaged may be sound; then it runs or says why not.
    #[test]
    fn whatever_is_read_runs_or_is_refused(
        flips in prop::collection::vec((any::<Index>(), 1..=255u8), 1..3),
    ) {
        let whole = trained().written();
        let (operations, header) = (word(&whole, 16), word(&whole, 24));
        let mut damaged = whole.clone();
        let parts = &mut damaged[PREFIX + 20..PREFIX + operations + header];
        flips.iter().for_each(|(at, bits)| *at.get_mut(parts) ^= bits);
        match read(&resealed(damaged, operations, header)) {
            Ok(step) => {
                let given = |tensor: &Tensor| {
                    let meta = Meta::new(tensor.dtype, tensor.shape.clone());
                    View::new(engine::host().device(), meta)
                };
                let given: Vec<View> = step.arguments().iter().map(given).collect();
                let _ = step.call(&given); // an error is as good as a result
            }
            Err(error) => prop_assert!(matches!(error, Error::Checkpoint { .. }), "{error:?}"),
        }
    }
}
