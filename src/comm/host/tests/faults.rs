//! Ranks that fail, stay away or come with something else.

use std::time::Instant;

use super::model::Operation;
use super::*;
use crate::comm::Liveness;

const SHORT: Duration = Duration::from_millis(300);

/// A collective round in which nothing is moved.
fn barrier(host: &mut Host, what: &str) -> Result<(), Fault> {
    host.all_gather(&round(what), &[], &mut [])
}

#[test]
fn a_rank_that_sleeps_is_not_there_yet() {
    let faults = ranks(3, SHORT, |mut host| {
        if host.rank() == 1 {
            thread::sleep(SHORT * 2);
        }
        (barrier(&mut host, "step").unwrap_err(), host.idle().unwrap_err())
    });
    for rank in [0, 2] {
        let Fault::Timeout { ranks, seconds } = &faults[rank].0 else { panic!("{faults:?}") };
        assert_eq!(ranks, &[(1, Liveness::Away)]);
        assert!((0.3..3.0).contains(seconds), "{seconds}");
    }
    let Fault::Failed { text, .. } = &faults[1].0 else { panic!("{faults:?}") };
    assert_eq!(text, "it waited 0.3 s for rank 1 (not there yet)");
    assert!(faults.iter().all(|(fault, later)| fault == later));
}

#[test]
fn the_cause_of_a_chain_is_named() {
    let faults = ranks(4, SHORT, |mut host| {
        match host.rank() {
            3 => thread::sleep(SHORT * 2),
            // The first to run out of time waits for one that waits itself.
            rank => thread::sleep(SHORT / 8 * rank as u32),
        }
        let from = (host.rank() + 1) % 4;
        host.receive(&round("chain"), &mut [0], from).unwrap_err()
    });
    for fault in &faults[..3] {
        assert!(matches!(fault, Fault::Timeout { ranks, .. } if ranks == &[(3, Liveness::Away)]));
    }
}

#[test]
fn ranks_that_wait_for_each_other_are_away() {
    let faults = ranks(2, SHORT, |mut host| {
        let other = 1 - host.rank();
        host.receive(&round("both"), &mut [0], other).unwrap_err()
    });
    let is_away = |fault: &Fault| matches!(fault, Fault::Timeout { ranks, .. } if matches!(ranks[..], [(_, Liveness::Away)]));
    assert!(faults.iter().any(is_away), "{faults:?}");
}

#[test]
fn who_closes_the_group_is_gone_at_once() {
    let faults = ranks(2, LONG, |mut host| {
        barrier(&mut host, "step").unwrap();
        if host.rank() == 1 { Ok(()) } else { barrier(&mut host, "next") }
    });
    let Err(Fault::Timeout { ranks, seconds }) = &faults[0] else { panic!("{faults:?}") };
    assert_eq!(ranks, &[(1, Liveness::Gone)]);
    assert!(*seconds < 2.0);
}

#[test]
fn a_report_that_cannot_be_finished_names_its_writer() {
    let faults = ranks(3, SHORT * 4, |mut host| {
        if host.rank() == 0 {
            return host.receive(&round("step"), &mut [0], 2);
        }
        thread::sleep(SHORT * host.rank() as u32);
        assert!(host.rank() == 2 || host.segment.report().begin(1));
        Ok(())
    });
    let Err(Fault::Timeout { ranks, .. }) = &faults[0] else { panic!("{faults:?}") };
    assert_eq!(ranks, &[(1, Liveness::Gone)]);
}

#[test]
fn what_was_sent_before_the_end_arrives() {
    ranks(2, LONG, |mut host| {
        if host.rank() == 1 {
            return host.send(&round("last"), &[1, 2, 3], 0).unwrap();
        }
        thread::sleep(SHORT);
        let mut bytes = [0; 3];
        host.receive(&round("last"), &mut bytes, 1).unwrap();
        assert_eq!(bytes, [1, 2, 3]);
    });
}

#[test]
fn a_round_that_differs_is_refused_on_every_rank() {
    for (odd, late) in (0..3).flat_map(|odd| (0..3).map(move |late| (odd, late))) {
        let faults = ranks(3, LONG, |mut host| {
            if host.rank() == late {
                thread::sleep(Duration::from_millis(120));
            }
            let what = if host.rank() == odd { "odd" } else { "even" };
            barrier(&mut host, what).unwrap_err()
        });
        for (rank, fault) in faults.iter().enumerate() {
            let Fault::Differs { rank: other, theirs, ours } = fault else { panic!("{fault:?}") };
            let words = if rank == odd { ("odd", "even") } else { ("even", "odd") };
            assert_eq!((ours.as_str(), theirs.as_str()), words);
            assert!(rank == odd || *other == odd);
        }
    }
}

#[test]
fn other_numbers_of_bytes_and_other_ways_differ() {
    for odd in 0..2 {
        let faults = ranks(2, LONG, |mut host| {
            let bytes = if host.rank() == odd { 4 } else { 3 };
            host.all_gather(&round("same"), &vec![0; bytes], &mut vec![0; 2 * bytes]).unwrap_err()
        });
        assert!(faults.iter().all(|fault| matches!(fault, Fault::Differs { .. })));
        let faults = ranks(2, LONG, |mut host| {
            host.broadcast(&round("same"), &mut [0], usize::from(host.rank() == odd)).unwrap_err()
        });
        assert!(faults.iter().all(|fault| matches!(fault, Fault::Differs { .. })));
    }
}

#[test]
fn both_ends_of_a_pair_get_to_know_that_they_differ() {
    let faults = ranks(3, LONG, |mut host| match host.rank() {
        0 => {
            host.send(&round("a letter"), &[1], 1).unwrap();
            host.receive(&round("an answer"), &mut [0], 1).unwrap_err()
        }
        1 => host.receive(&round("a parcel"), &mut [0], 0).unwrap_err(),
        _ => host.receive(&round("a copy"), &mut [0], 0).unwrap_err(),
    });
    let differs = |rank, theirs: &str, ours: &str| Fault::Differs {
        rank,
        theirs: theirs.into(),
        ours: ours.into(),
    };
    assert_eq!(faults[0], differs(1, "a parcel", "a letter"));
    assert_eq!(faults[1], differs(0, "a letter", "a parcel"));
    let text = "it came with a parcel, rank 0 with a letter".into();
    assert_eq!(faults[2], Fault::Failed { rank: 1, text });
}

#[test]
fn a_failure_at_any_point_reaches_all_others() {
    let last = 12;
    for (point, failing) in (0..last).flat_map(|point| (0..3).map(move |rank| (point, rank))) {
        let faults = ranks(3, LONG, |mut host| {
            let seed = point as u64 + 100;
            for index in 0..last {
                if (index, host.rank()) == (point, failing) {
                    host.fail("no memory");
                }
                Operation::random(seed, index, 3).run(&mut host)?;
            }
            barrier(&mut host, "end")
        });
        let want = Err(Fault::Failed { rank: failing, text: "no memory".into() });
        assert!(faults.iter().all(|fault| *fault == want), "{point} {failing}: {faults:?}");
    }
}

#[test]
fn a_failure_wakes_who_waits_and_is_seen_by_who_is_idle() {
    let waits = ranks(3, LONG, |mut host| {
        let begun = Instant::now();
        match host.rank() {
            0 => {
                thread::sleep(SHORT);
                host.fail("no memory");
            }
            1 => assert!(host.receive(&round("step"), &mut [0], 0).is_err()),
            _ => {
                while host.idle().is_ok() {
                    thread::sleep(Duration::from_millis(1));
                }
            }
        }
        begun.elapsed()
    });
    assert!(waits.iter().all(|wait| *wait < SHORT * 3), "{waits:?}");
}

#[test]
fn a_failure_is_heard_before_the_next_look_around() {
    let mut delays: Vec<Duration> = (0..9)
        .map(|_| {
            let times = ranks(2, LONG, |mut host| {
                if host.rank() == 0 {
                    thread::sleep(Duration::from_millis(20));
                    let failed = Instant::now();
                    host.fail("no memory");
                    return failed;
                }
                barrier(&mut host, "step").unwrap_err();
                Instant::now()
            });
            times[1] - times[0]
        })
        .collect();
    delays.sort();
    assert!(delays[4] < Duration::from_millis(10), "{delays:?}");
}

#[test]
fn ranks_that_differ_at_once_all_know_it() {
    for _ in 0..300 {
        let faults = ranks(3, LONG, |mut host| {
            let what = if host.rank() == 1 { "odd" } else { "even" };
            barrier(&mut host, what).unwrap_err()
        });
        let differ = |fault: &Fault| matches!(fault, Fault::Differs { .. });
        assert!(faults.iter().all(differ), "{faults:?}");
    }
}

#[test]
fn another_timeout_holds_from_the_next_call() {
    let faults = ranks(2, LONG, |mut host| {
        host.set_timeout(Duration::from_millis(60));
        if host.rank() == 1 {
            thread::sleep(SHORT * 2);
        }
        barrier(&mut host, "step").unwrap_err()
    });
    assert!(matches!(&faults[0], Fault::Timeout { seconds, .. } if *seconds < 3.0), "{faults:?}");
}
