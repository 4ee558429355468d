//! What operations give.

use std::sync::Barrier;

use super::model::{Kind, Operation};
use super::signal::Signal;
use super::*;
use crate::comm::Liveness;

#[test]
fn every_operation_moves_every_number_of_bytes() {
    let lengths = [0, 1, 63, 4096, CHUNK, CHUNK + 1, (3 << 20) + 5];
    for size in [1, 2, 3, 4, 7] {
        ranks(size, LONG, |mut host| {
            for bytes in lengths {
                let roots = (0..size).map(|root| Kind::Broadcast { root });
                let pairs = (1..size).flat_map(|to| {
                    [Kind::Pair { from: 0, to }, Kind::Pair { from: to, to: to - 1 }]
                });
                for kind in [Kind::Gather, Kind::Exchange].into_iter().chain(roots).chain(pairs) {
                    Operation { kind, bytes, seed: bytes as u64 }.run(&mut host).unwrap();
                }
            }
        });
    }
}

#[test]
fn random_sequences_agree_with_the_model() {
    for (seed, size) in [1, 2, 3, 4, 7].into_iter().enumerate() {
        ranks(size, LONG, |mut host| {
            for index in 0..1000 {
                Operation::random(seed as u64, index, size).run(&mut host).unwrap();
            }
        });
    }
}

#[test]
fn ranges_cover_any_number_of_bytes() {
    let bytes = (5 << 30) + 3;
    let ends = cut(bytes, CHUNK).try_fold(0, |end, range| {
        (range.start == end && (1..=CHUNK).contains(&range.len())).then_some(range.end)
    });
    assert_eq!(ends, Some(bytes));
    assert!(cut(0, CHUNK).eq(std::iter::once(0..0)));
}

#[test]
fn numbers_may_overflow() {
    let (size, are_set) = (3, Barrier::new(3));
    ranks(size, LONG, |mut host| {
        let (near, rank) = (u32::MAX - 3, host.rank());
        host.segment.member(rank).published.set(near);
        for other in 0..size {
            host.segment.ring(rank, other).sent.set(near);
            host.segment.ring(other, rank).taken.set(near);
        }
        are_set.wait();
        for index in 0..400 {
            Operation::random(77, index, size).run(&mut host).unwrap();
        }
        let passed = |signal: &Signal| signal.get() < near;
        assert!(passed(&host.segment.member(rank).published));
        let mut others = (0..size).filter(|other| *other != rank);
        assert!(others.all(|other| passed(&host.segment.ring(rank, other).sent)));
    });
}

#[test]
fn a_late_rank_takes_part_in_every_round() {
    ranks(3, LONG, |mut host| {
        for index in 0..12 {
            if index % 3 == host.rank() {
                thread::sleep(Duration::from_millis(70));
            }
            Operation { kind: Kind::Gather, bytes: 100, seed: index as u64 }
                .run(&mut host)
                .unwrap();
        }
    });
}

#[test]
fn a_sender_is_at_most_two_parts_ahead() {
    let given_up = Barrier::new(2);
    let faults = ranks(2, Duration::from_millis(200), |mut host| {
        let part = vec![5; host.segment.part()];
        if host.rank() == 0 {
            host.send(&round("one"), &part, 1).unwrap();
            host.send(&round("two"), &part, 1).unwrap();
            let fault = host.send(&round("three"), &part, 1).unwrap_err();
            given_up.wait();
            fault
        } else {
            given_up.wait();
            host.idle().unwrap_err()
        }
    });
    let Fault::Timeout { ranks, .. } = &faults[0] else { panic!("{faults:?}") };
    assert_eq!(ranks, &[(1, Liveness::Away)]);
    let missed = |text: &str| text.ends_with("for rank 1 (not there yet)");
    assert!(matches!(&faults[1], Fault::Failed { rank: 0, text } if missed(text)), "{faults:?}");
}

#[test]
fn what_does_not_fit_is_refused() {
    let errors = |part: fn(&mut Host) -> Result<(), Fault>| {
        ranks(2, LONG, |mut host| part(&mut host).unwrap_err().to_string())[0].clone()
    };
    let refused = [
        errors(|host| host.all_gather(&round("step"), &[1; 3], &mut [0; 5])),
        errors(|host| host.all_to_all(&round("step"), &[1; 3], &mut [0; 3])),
        errors(|host| host.all_to_all(&round("step"), &[1; 4], &mut [0; 2])),
        errors(|host| host.broadcast(&round("step"), &mut [0; 5], 2)),
        errors(|host| host.send(&round("step"), &[0; 5], host.rank())),
        errors(|host| host.receive(&round("step"), &mut [0; 5], 2)),
    ];
    for (text, words) in refused.iter().zip([
        "all_gather: got 5 bytes",
        "all_to_all: got 3 bytes",
        "all_to_all: got 2 bytes",
        "broadcast: got root 2",
        "got rank 0, want another",
        "got rank 2, want another",
    ]) {
        assert!(text.contains(words), "{text}");
    }
}
