//! Small crews under loom, which runs them in every order of the threads' steps (of those with few
//! changes from one thread to the other), and with every value that an atomic may show. Each task
//! writes a cell that its successors read; loom finds reads that are not ordered behind the writes.
#![allow(unsafe_code)]

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::model::Builder;
use loom::thread;

use super::*;
use crate::graph::Csr;

type Rows = &'static [&'static [u32]];

struct World {
    crew: Crew,
    rows: Rows,
    cells: Vec<UnsafeCell<u32>>,
}

impl World {
    fn new(rows: Rows, workers: usize) -> World {
        let mut edges = Csr::with_capacity(rows.len(), 0);
        for row in rows {
            row.iter().for_each(|&earlier| edges.push(earlier));
            edges.end_row();
        }
        let all = 0..rows.len() as u32;
        let mut crew = Crew::new(&edges, std::slice::from_ref(&all), workers);
        crew.begin(0, &all);
        World { crew, rows, cells: rows.iter().map(|_| UnsafeCell::new(0)).collect() }
    }

    fn work(&self, number: usize) {
        self.crew.worker(number).work(|task| {
            for &earlier in self.rows[task as usize] {
                // SAFETY: loom checks that no write happens meanwhile.
                self.cells[earlier as usize].with(|cell| assert_eq!(unsafe { *cell }, 1));
            }
            // SAFETY: loom checks that nothing else happens to the cell meanwhile.
            self.cells[task as usize].with_mut(|cell| unsafe { *cell += 1 });
        });
    }
}

/// Runs tasks on so many threads, each of which also sees at its end what all tasks have written.
fn check(rows: Rows, workers: usize) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let world = Arc::new(World::new(rows, workers));
        let all_ran = |world: &World| {
            for cell in &world.cells {
                // SAFETY: loom checks that no write happens meanwhile.
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
        let threads: Vec<_> = (1..workers).map(spawn).collect();
        world.work(0);
        all_ran(&world);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn a_fork_and_a_join() {
    check(&[&[], &[0], &[0], &[1, 2]], 2);
}

#[test]
fn two_roots_and_a_join() {
    check(&[&[], &[], &[0, 1], &[2]], 2);
}

#[test]
fn a_task_that_three_lead_to() {
    check(&[&[], &[0], &[0], &[0], &[1, 2, 3]], 2);
}

#[test]
fn roots_that_share_successors() {
    check(&[&[], &[], &[0], &[0, 1], &[1]], 2);
}
