use super::*;
use crate::graph::testing::one_segment;

/// Tasks of one segment with their predecessors, parts and times.
fn tasks(rows: &[&[u32]], parts: &[u32], times: &[u64]) -> Tasks {
    Tasks::new(&one_segment(rows, parts, times))
}

fn due(tasks: &Tasks, count: u32) -> Vec<bool> {
    (0..count).map(|seat| tasks.is_due(seat)).collect()
}

#[test]
fn what_is_done_is_told_before_it_amounts_to_more_than_a_microsecond() {
    let free = |times: &[u64]| {
        let rows = vec![&[][..]; times.len()];
        due(&tasks(&rows, &vec![0; times.len()], times), times.len() as u32)
    };
    assert_eq!(free(&[300; 7]), [false, false, true, false, false, true, false]);
    assert_eq!(free(&[500; 5]), [false, true, false, true, false], "exactly one may be untold");
    assert_eq!(free(&[900, 50, 200, 10]), [false, true, false, false], "the next one counts");
    assert_eq!(free(&[2000, 0, 0]), [true, false, false], "a long one counts once");
}

#[test]
fn what_the_next_task_of_the_part_waits_for_is_told_at_once() {
    let rows: &[&[u32]] = &[&[], &[0], &[], &[0]];
    assert_eq!(due(&tasks(rows, &[0; 4], &[0; 4]), 4), [true, false, false, false]);
    let other_part = tasks(&[&[], &[0], &[]], &[0, 1, 1], &[0; 3]);
    assert_eq!(due(&other_part, 3), [false; 3], "another part has time");
}

#[test]
fn tasks_that_follow_one_by_one_are_a_chain() {
    let ends = |rows: &[&[u32]], parts: &[u32]| -> Vec<u32> {
        let tasks = tasks(rows, parts, &vec![0; rows.len()]);
        (0..rows.len() as u32).map(|seat| tasks.last(seat)).collect()
    };
    assert_eq!(ends(&[&[], &[0], &[1], &[]], &[0; 4]), [2, 2, 2, 3]);
    assert_eq!(ends(&[&[], &[0], &[0]], &[0; 3]), [0, 1, 2], "two successors");
    assert_eq!(ends(&[&[], &[], &[0, 1]], &[0; 3]), [0, 1, 2], "two predecessors");
    assert_eq!(ends(&[&[], &[0]], &[0, 1]), [0, 1], "another part");
}

#[test]
fn counters_within_long_chains_are_left_alone() {
    // The first chain has `length` tasks; one more task follows it.
    let counted = |length: u32| {
        let earlier: Vec<u32> = (0..length).collect();
        let mut rows: Vec<&[u32]> = vec![&[]];
        rows.extend(earlier[..length as usize - 1].chunks(1));
        rows.push(&[]);
        let count = rows.len();
        tasks(&rows, &vec![0; count], &vec![0; count]).counted(0).to_vec()
    };
    assert_eq!(counted(65), std::slice::from_ref(&(0..66)), "one copy is quicker than two");
    assert_eq!(counted(66), [0..1, 66..67]);
}

#[test]
fn a_part_has_room_for_all_the_mail_it_may_get() {
    let most = |rows: &[&[u32]], parts: &[u32], part: usize| {
        let count = rows.len() as u32;
        let tasks = tasks(rows, parts, &vec![0; rows.len()]);
        tasks.most_mail(std::slice::from_ref(&(0..count)), part)
    };
    assert_eq!(most(&[&[], &[0], &[0]], &[0; 3], 0), 1, "one task has successors at home");
    assert_eq!(most(&[&[], &[0], &[0]], &[0, 1, 1], 1), 1, "one group of successors elsewhere");
    assert_eq!(most(&[&[], &[], &[0], &[1]], &[0, 0, 1, 1], 1), 2);
    assert_eq!(most(&[&[], &[0], &[1]], &[0; 3], 0), 0, "nobody is told within a chain");
}
