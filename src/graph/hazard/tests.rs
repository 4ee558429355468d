use super::*;

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
