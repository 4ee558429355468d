//! Small crews under loom, which explores every interleaving of the threads with few preemptions,
//! and every value that an atomic load may return. Each task writes a cell that its successors
//! read; loom reports reads that are not ordered after the writes.
#![allow(unsafe_code)]

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::model::Builder;
use loom::thread;

use super::*;
use crate::graph::testing::one_segment;

type Rows = &'static [&'static [u32]];

struct World {
    crew: Crew,
    rows: Rows,
    cells: Vec<UnsafeCell<u32>>,
}

impl World {
    fn new(rows: Rows, parts: &[u32], time: u64) -> World {
        let schedule = one_segment(rows, parts, &vec![time; rows.len()]);
        let mut crew = Crew::new(&Schedule { workers: schedule.workers.max(2), ..schedule });
        crew.begin(0, &(0..rows.len() as u32));
        World { crew, rows, cells: rows.iter().map(|_| UnsafeCell::new(0)).collect() }
    }

    fn work(&self, number: usize) {
        let run = |task: u32| {
            for &earlier in self.rows[task as usize] {
                // SAFETY: loom checks that there is no concurrent write.
                self.cells[earlier as usize].with(|cell| assert_eq!(unsafe { *cell }, 1));
            }
            // SAFETY: loom checks that there is no concurrent access.
            self.cells[task as usize].with_mut(|cell| unsafe { *cell += 1 });
        };
        self.crew.worker(number).work(|_| true, run);
    }
}

/// Runs tasks on two threads, which must also adopt any third part; at its end each thread sees
/// what all tasks have written.
fn check(rows: Rows, parts: &'static [u32]) {
    // Nanoseconds: long tasks are reported one by one, short ones together.
    [0, 1000].into_iter().for_each(|time| check_with(rows, parts, time));
}

fn check_with(rows: Rows, parts: &'static [u32], time: u64) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let world = Arc::new(World::new(rows, parts, time));
        let all_ran = |world: &World| {
            for cell in &world.cells {
                // SAFETY: loom checks that there is no concurrent write.
                cell.with(|cell| assert_eq!(unsafe { *cell }, 1));
            }
        };
        let spawn = |number: usize| {
            let world = world.clone();
            thread::spawn(move || {
                world.work(number);
                all_ran(&world);
            })
        };
        let other = spawn(1);
        world.work(0);
        all_ran(&world);
        other.join().unwrap();
    });
}

#[test]
fn a_fork_and_a_join() {
    check(&[&[], &[0], &[0], &[1, 2]], &[0, 0, 1, 0]);
}

#[test]
fn two_roots_and_a_join() {
    check(&[&[], &[], &[0, 1], &[2]], &[0, 1, 1, 0]);
}

#[test]
fn tasks_that_another_worker_takes() {
    check(&[&[], &[0], &[0], &[0]], &[0, 0, 0, 0]);
}

#[test]
fn a_chain_and_who_waits_for_its_end() {
    check(&[&[], &[0], &[1], &[1]], &[0, 0, 0, 1]);
}

#[test]
fn roots_that_share_successors() {
    check(&[&[], &[], &[0, 1], &[0, 1]], &[0, 1, 0, 1]);
}

#[test]
fn a_part_that_nobody_comes_for() {
    check(&[&[], &[], &[], &[], &[], &[4], &[4]], &[0, 1, 1, 1, 2, 2, 2]);
}
