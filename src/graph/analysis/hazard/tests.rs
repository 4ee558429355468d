use proptest::prelude::*;

use super::*;
use crate::graph::verify::tests::oracle::{pairs, paths};

fn program(rows: &[&[Access]], resources: usize) -> Hazards {
    let mut accesses = Csr::with_capacity(0, 0);
    for row in rows {
        row.iter().for_each(|access| accesses.push(*access));
        accesses.end_row();
    }
    hazards(&accesses, resources)
}

fn predecessors(found: &Hazards) -> Vec<&[u32]> {
    found.edges.iter().collect()
}

#[test]
fn the_three_hazards_of_a_whole_block() {
    let (read, write) = (Access::read(0, 0..8), Access::write(0, 0..8));
    let found = program(&[&[write], &[read], &[read], &[write], &[write], &[read]], 1);
    assert_eq!(predecessors(&found), [&[][..], &[0], &[0], &[1, 2], &[3], &[4]]);
    assert!(found.cycles.is_empty());
}

#[test]
fn an_update_in_place_depends_on_itself_through_the_next_run() {
    let update = [Access::read(1, 0..8), Access::write(1, 0..8)];
    let found = program(&[&[Access::read(1, 0..8)], &update, &update], 2);
    assert_eq!(predecessors(&found), [&[][..], &[0], &[1]]);
    assert_eq!(found.cycles, [1]);
    let part = [Access::write(0, 0..4), Access::read(0, 4..8)];
    assert!(program(&[&part[..1], &part[1..], &part[..1]], 1).cycles.is_empty());
    assert_eq!(program(&[&part[..1], &part[1..], &[Access::write(0, 3..8)]], 1).cycles, [0]);
}

#[test]
fn ranges_that_do_not_meet_are_independent() {
    let rows: [&[Access]; 5] = [
        &[Access::write(0, 0..4)],
        &[Access::write(0, 4..8)],
        &[Access::read(0, 2..4)],
        &[Access::write(0, 3..6)],
        &[Access::read(0, 0..8)],
    ];
    let found = program(&rows, 1);
    assert_eq!(predecessors(&found), [&[][..], &[], &[0], &[1, 2], &[0, 1, 3]]);
}

#[test]
fn many_ranges_of_one_block_stay_cheap() {
    let count = 100_000;
    let ranges = (0..count).map(|i| Access::write(0, i * 4..i * 4 + 4));
    let mut accesses = Csr::with_capacity(0, 0);
    let whole = [Access::read(0, 0..count * 4), Access::write(0, 0..count * 4)];
    for access in ranges.chain(whole) {
        accesses.push(access);
        accesses.end_row();
    }
    let found = hazards(&accesses, 1);
    assert_eq!(found.edges.row(count).len(), count);
    assert_eq!(found.edges.row(count + 1), [count as u32]);
}

/// Whether the node of each row has to run before that of each column, by comparing all pairs and
/// following paths.
fn oracle(rows: &[Vec<Access>]) -> Vec<Vec<bool>> {
    let meets = |a: &Access, b: &Access| {
        a.resource == b.resource && (a.is_write || b.is_write) && a.start < b.end && b.start < a.end
    };
    let conflict = |a: usize, b: usize| rows[a].iter().any(|x| rows[b].iter().any(|y| meets(x, y)));
    let nodes = 0..rows.len();
    let pairs = nodes.clone().flat_map(|b| (0..b).map(move |a| (a, b)));
    paths(rows.len(), &pairs.filter(|&(a, b)| conflict(a, b)).collect::<Vec<_>>())
}

/// The resources with a byte that is read before it is first written.
fn turned(rows: &[Vec<Access>]) -> Vec<u32> {
    let all: Vec<&Access> = rows.iter().flatten().collect();
    let first = |resource: u32, byte: usize| {
        let touches = |a: &&&Access| a.resource == resource && (a.start..a.end).contains(&byte);
        let mut touching = all.iter().filter(touches);
        touching.next().is_some_and(|a| !a.is_write) && touching.any(|a| a.is_write)
    };
    (0..RESOURCES).filter(|&r| (0..BYTES).any(|byte| first(r, byte))).collect()
}

const RESOURCES: u32 = 3;
const BYTES: usize = 12;

/// The accesses of a few nodes; each node reads before it writes.
fn rows() -> impl Strategy<Value = Vec<Vec<Access>>> {
    let range = (0..BYTES, 1..=BYTES).prop_map(|(at, count)| at..(at + count).min(BYTES));
    let range = prop_oneof![range, Just(0..BYTES)];
    let access = (0..RESOURCES, range, any::<bool>()).prop_map(|(resource, range, is_write)| {
        Access { is_write, ..Access::read(resource, range) }
    });
    let row = prop::collection::vec(access, 0..4).prop_map(|mut row| {
        row.sort_by_key(|access| access.is_write);
        row
    });
    prop::collection::vec(row, 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn edges_order_what_shares_bytes_and_nothing_else(rows in rows()) {
        let slices: Vec<&[Access]> = rows.iter().map(Vec::as_slice).collect();
        let found = program(&slices, RESOURCES as usize);
        prop_assert_eq!(paths(rows.len(), &pairs(&found.edges)), oracle(&rows));
        prop_assert_eq!(&found.cycles, &turned(&rows));
        let ascending = |row: &[u32]| row.is_sorted_by(|a, b| a < b);
        prop_assert!(found.edges.iter().all(ascending));
    }
}
