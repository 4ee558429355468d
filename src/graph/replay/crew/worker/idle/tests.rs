//! Workers that are stepped by hand, on one thread.

use super::super::Crew;
use super::*;
use crate::graph::testing::one_segment;

/// The time in nanoseconds of a task that is reported together with others, and of one that is
/// reported by itself.
const SHORT: u64 = 1;
const LONG: u64 = 10_000;

/// Tasks of one segment with their predecessors and parts, each of the given time.
fn crew(rows: &[&[u32]], parts: &[u32], time: u64) -> Crew {
    let mut crew = Crew::new(&one_segment(rows, parts, &vec![time; rows.len()]));
    crew.begin(0, &(0..rows.len() as u32));
    crew
}

/// How many predecessors a task still waits for, as far as its owner has read its mail.
fn waits(crew: &Crew, seat: usize) -> u32 {
    crew.waits[seat].load(Relaxed)
}

fn requests(crew: &Crew) -> u32 {
    crew.requests.0.load(Relaxed)
}

/// A worker that owns its part, before its first task.
fn worker(crew: &Crew, number: usize) -> Worker<'_> {
    let mut worker = crew.worker(number);
    worker.rest = crew.claim(number, number).expect("nobody else has come");
    worker
}

/// Starts the first task of a worker's part, which is ready.
fn start(worker: &mut Worker) -> u32 {
    worker.advance().expect("the first task is ready")
}

#[test]
fn a_worker_begins_with_its_own_part_and_asks_nobody() {
    let crew = crew(&[&[], &[]], &[0, 1], SHORT);
    let mut second = crew.worker(1);
    assert_eq!(second.begin(), 1);
    assert_eq!(second.rest, 2..2);
    assert_eq!((crew.owners[0].load(Relaxed), crew.owners[1].load(Relaxed)), (NONE, 1));
    assert_eq!(requests(&crew), 0);
}

#[test]
fn long_tasks_are_told_before_the_next_one_and_short_ones_together() {
    // The first of two free tasks has a successor in another part.
    let rows: &[&[u32]] = &[&[], &[], &[0]];
    for (time, left) in [(LONG, 0), (SHORT, 1)] {
        let crew = crew(rows, &[0, 0, 1], time);
        let (mut first, mut second) = (worker(&crew, 0), worker(&crew, 1));
        let seat = start(&mut first);
        assert_eq!(first.next(seat), 1);
        second.receive();
        assert_eq!(waits(&crew, 2), left, "tasks of {time} ns");
        first.tell();
        second.receive();
        assert_eq!(waits(&crew, 2), 0);
    }
}

#[test]
fn a_task_out_of_turn_is_told_at_once_and_those_in_turn_behind_it_together() {
    // The first part's first task waits for the second part; its tasks lead to others there. The
    // seats of the first part are 0 to 3, those of the second one 4 to 7.
    let rows: &[&[u32]] = &[&[], &[0], &[], &[], &[], &[1], &[2], &[3]];
    let crew = crew(rows, &[1, 0, 0, 0, 0, 1, 1, 1], SHORT);
    let (mut first, mut second) = (worker(&crew, 0), worker(&crew, 1));
    assert_eq!(first.skip(), Some(1), "it goes past the one that is not ready");
    let seat = start(&mut second);
    second.tell();
    assert_eq!(seat, 4);
    first.receive();
    assert_eq!(first.next(1), 0, "it goes back to the one that has become ready");
    assert_eq!(first.next(0), 2);
    second.receive();
    assert_eq!([5, 6].map(|seat| waits(&crew, seat)), [0, 0]);
    assert_eq!(first.next(2), 3);
    second.receive();
    assert_eq!(waits(&crew, 7), 1, "not told yet");
}

#[test]
fn a_task_of_another_part_is_not_told_together_with_ones_own() {
    // The second worker gets the last task of the first part, whose seat comes just before its own.
    let crew = crew(&[&[], &[], &[], &[2], &[2]], &[0, 0, 1, 1, 1], SHORT);
    let mut second = worker(&crew, 1);
    assert_eq!(second.alone(1), 1);
    assert_eq!(second.next(1), 2);
    second.tell();
    assert_eq!([3, 4].map(|seat| waits(&crew, seat)), [0, 0]);
}

#[test]
fn a_worker_goes_past_so_many_tasks_that_are_not_ready() {
    // `count` tasks wait for the other part; one more does not.
    let at = |count: usize| {
        let mut rows: Vec<&[u32]> = vec![&[0]; count + 2];
        (rows[0], rows[count + 1]) = (&[], &[]);
        let mut parts = vec![0; count + 2];
        parts[0] = 1;
        (rows, parts)
    };
    let (rows, parts) = at(64);
    let few = crew(&rows, &parts, SHORT);
    assert_eq!(worker(&few, 0).skip(), Some(64), "the seats of the first part begin at zero");
    let (rows, parts) = at(65);
    let many = crew(&rows, &parts, SHORT);
    let (mut first, mut second) = (worker(&many, 0), worker(&many, 1));
    assert_eq!((first.skip(), first.skipped, first.rest.start), (None, 64, 64));
    start(&mut second);
    second.tell();
    first.receive();
    assert_eq!((first.skipped, waits(&many, 64)), (0, 0), "all that it has gone past are ready");
    assert_eq!(std::iter::from_fn(|| first.late.pop()).collect::<Vec<_>>(), Vec::from_iter(0..64));
}

#[test]
fn who_is_asked_within_a_chain_offers_another_task() {
    let crew = crew(&[&[], &[0], &[], &[]], &[0, 0, 0, 0], SHORT);
    let mut only = worker(&crew, 0);
    let seat = start(&mut only);
    crew.interrupt();
    assert_eq!((requests(&crew), only.next(seat)), (1, 1), "the chain goes on");
    assert_eq!(crew.take(0), 3, "the task behind the next one is given");
    assert_eq!(only.heard, 1);
    crew.interrupt();
    assert_eq!(only.next(1), 2);
    assert_eq!((crew.take(0), only.heard), (NONE, 2), "there is nothing else to give");
    assert_eq!(only.skip(), None, "what was given is not run again");
}

#[test]
fn who_offers_reads_its_mail_first() {
    let crew = crew(&[&[], &[0]], &[1, 0], SHORT);
    let (mut first, mut second) = (worker(&crew, 0), worker(&crew, 1));
    assert_eq!(first.skip(), None);
    start(&mut second);
    second.tell();
    first.offer();
    assert_eq!(crew.take(0), 0, "the late task");
}

#[test]
fn an_offer_stands_until_it_is_taken() {
    let crew = crew(&[&[][..]; 4], &[0; 4], SHORT);
    let mut only = worker(&crew, 0);
    only.offer();
    only.offer();
    assert_eq!((crew.take(0), crew.take(0)), (1, NONE));
}

#[test]
fn each_worker_takes_from_every_other_one_and_knows_its_own_requests() {
    for (giver, taker) in (0..9).map(|n| (n / 3, n % 3)).filter(|(a, b)| a != b) {
        let crew = crew(&[&[][..]; 6], &[0, 0, 1, 1, 2, 2], SHORT);
        worker(&crew, giver).offer();
        let mut other = crew.worker(taker);
        other.patience.begin();
        assert_eq!(other.ask(), Some(2 * giver as u32 + 1), "{taker} asks {giver}");
        assert_eq!((requests(&crew), other.heard), (1, 1));
    }
}

#[test]
fn each_worker_writes_to_each_part_on_a_page_of_its_own() {
    let crew = crew(&[&[][..]; 3], &[0, 1, 2], SHORT);
    let pages: Vec<*const _> =
        (0..9).map(|n| std::ptr::from_ref(crew.mail(n / 3, n % 3))).collect();
    assert!((0..9).all(|n| !pages[..n].contains(&pages[n])));
}

#[test]
fn who_adopts_a_part_keeps_count_of_the_chains_that_it_leaves_behind() {
    // Chains of two that wait for the other part, whose worker does not arrive.
    let ends: Vec<[u32; 1]> = (0..141).map(|n| [n]).collect();
    let (mut rows, mut parts): (Vec<&[u32]>, Vec<u32>) = (vec![&[]], vec![1]);
    for chain in 0..70 {
        rows.extend([&ends[0][..], &ends[2 * chain + 1]]);
        parts.extend([0, 0]);
    }
    let crew = crew(&rows, &parts, SHORT);
    let mut first = worker(&crew, 0);
    assert_eq!((first.skip(), first.skipped, &first.rest), (None, 64, &(128..140)));
    first.adopt();
    assert_eq!((first.skipped, first.rest.clone(), first.late.pop()), (70, 140..141, None));
}
