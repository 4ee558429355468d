use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use super::*;
use crate::graph::testing::edges;

/// Tasks that each wait for some earlier ones, assigned to parts at random.
fn crew(rows: &[Vec<u32>], segments: &[Range<u32>], workers: usize, seed: u32) -> Crew {
    let (edges, mut next) = (edges(rows), numbers(seed));
    // Often the part of the task before, so that there are chains.
    let mut parts = vec![0; rows.len()];
    for task in 1..rows.len() {
        parts[task] = if next(3) == 0 { next(workers as u32) } else { parts[task - 1] };
    }
    let times = rows.iter().map(|_| u64::from(next(1000))).collect();
    let (segments, gains) = (segments.to_vec(), vec![u64::MAX; segments.len()]);
    Crew::new(&Schedule { segments, gains, edges, parts, times, workers })
}

/// Random numbers below a given one.
fn numbers(seed: u32) -> impl FnMut(u32) -> u32 {
    let mut state = seed;
    move |below| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % below
    }
}

/// Runs segments on `workers` threads, and checks that each task runs once, after its predecessors.
fn run(
    rows: &[Vec<u32>],
    segments: &[Range<u32>],
    workers: usize,
    unwinds: impl Fn(u32) -> bool + Sync,
) {
    for seed in 0..3 {
        let mut crew = crew(rows, segments, workers, seed);
        let (clock, ran) = (AtomicUsize::new(1), rows.iter().map(|_| AtomicUsize::new(0)));
        let ran: Vec<AtomicUsize> = ran.collect();
        for (segment, tasks) in segments.iter().enumerate() {
            crew.begin(segment, tasks);
            let work = |number: usize| {
                let mut worker = crew.worker(number);
                let run = |task: u32| {
                    let before = ran[task as usize].swap(clock.fetch_add(1, SeqCst), SeqCst);
                    assert_eq!(before, 0, "task {task} ran twice");
                    if unwinds(task) {
                        resume_unwind(Box::new(task));
                    }
                };
                let mut work = || catch_unwind(AssertUnwindSafe(|| worker.work(|_| true, run)));
                while let Err(panic) = work() {
                    assert!(panic.is::<u32>(), "another panic");
                }
            };
            std::thread::scope(|scope| {
                (1..workers).for_each(|number| drop(scope.spawn(move || work(number))));
                work(0);
            });
        }
        for task in segments.iter().cloned().flatten() {
            let when = |task: u32| ran[task as usize].load(SeqCst);
            assert!(when(task) > 0, "task {task} did not run");
            assert!(rows[task as usize].iter().all(|&earlier| when(earlier) < when(task)));
        }
    }
}

/// Counts the tasks that ran.
fn count(ran: &AtomicUsize) -> impl Fn(u32) {
    |_| {
        ran.fetch_add(1, SeqCst);
    }
}

/// Tasks that each wait for a few of the `reach` tasks before them.
fn random(count: u32, reach: u32, seed: u32) -> Vec<Vec<u32>> {
    let mut next = numbers(seed);
    let mut row = |task: u32| {
        let mut row: Vec<u32> =
            (0..next(4)).map(|_| task.saturating_sub(1 + next(reach))).collect();
        row.retain(|&earlier| earlier < task);
        row.sort_unstable();
        row.dedup();
        row
    };
    (0..count).map(&mut row).collect()
}

#[test]
fn each_task_runs_once_behind_what_it_waits_for() {
    for (workers, reach) in [1, 2, 3, 7].into_iter().flat_map(|w| [1, 5, 60].map(|r| (w, r))) {
        for seed in 0..20 {
            let rows = random(200, reach, seed);
            run(&rows, std::slice::from_ref(&(0..200)), workers, |_| false);
        }
    }
}

#[test]
fn tasks_that_take_longer_are_taken_by_others() {
    for (workers, seed) in [2, 3].into_iter().flat_map(|w| (0..40).map(move |s| (w, s))) {
        let rows = random(40, 9, seed);
        let wait = |task: u32| {
            let start = std::time::Instant::now();
            while start.elapsed().as_nanos() < u128::from(task * seed % 7) * 1000 {
                std::hint::spin_loop();
            }
            false
        };
        run(&rows, std::slice::from_ref(&(0..40)), workers, wait);
    }
}

#[test]
fn segments_are_worked_off_one_by_one() {
    let mut rows = random(300, 20, 7);
    let segments = [0..90, 100..101, 101..300];
    for (n, row) in (0u32..).zip(&mut rows) {
        let start = segments.iter().find(|s| s.contains(&n)).map_or(n, |s| s.start);
        row.retain(|&earlier| earlier >= start);
    }
    run(&rows, &segments, 2, |_| false);
}

#[test]
fn a_task_that_unwinds_counts_as_run() {
    run(&random(200, 10, 3), std::slice::from_ref(&(0..200)), 2, |task| task % 3 == 0);
}

#[test]
fn one_thread_can_do_the_work_of_all() {
    let rows = random(100, 8, 5);
    let mut crew = crew(&rows, std::slice::from_ref(&(0..100)), 4, 1);
    crew.begin(0, &(0..100));
    let ran = AtomicUsize::new(0);
    for number in 0..4 {
        crew.worker(number).work(|_| true, count(&ran));
    }
    assert_eq!(ran.into_inner(), 100);
}

/// Chains of a hundred tasks, each of which starts after the first task of the one before.
fn chains(count: u32) -> Vec<Vec<u32>> {
    let earlier = |task: u32| if task.is_multiple_of(100) { 100 } else { 1 };
    (0..count).map(|task| task.checked_sub(earlier(task)).into_iter().collect()).collect()
}

#[test]
fn a_crew_works_again_and_again() {
    let of = |rows: Vec<Vec<u32>>| [1, 2].map(|workers| (workers, rows.clone()));
    for (workers, rows) in of(random(500, 40, 11)).into_iter().chain(of(chains(500))) {
        let mut crew = crew(&rows, std::slice::from_ref(&(0..500)), workers, 2);
        for _ in 0..100 {
            crew.begin(0, &(0..500));
            let ran = AtomicUsize::new(0);
            let work = |number: usize| crew.worker(number).work(|_| true, count(&ran));
            std::thread::scope(|scope| {
                (1..workers).for_each(|number| drop(scope.spawn(move || work(number))));
                work(0);
            });
            assert_eq!(ran.into_inner(), 500);
        }
    }
}

#[test]
fn who_is_interrupted_passes_over_what_may_not_run() {
    let rows = chains(300);
    let mut crew = crew(&rows, std::slice::from_ref(&(0..300)), 1, 0);
    for _ in 0..3 {
        crew.begin(0, &(0..300));
        let (ran, end) = (AtomicUsize::new(0), AtomicUsize::new(usize::MAX));
        let may = |task: u32| (task as usize) < end.load(SeqCst);
        crew.worker(0).work(may, |task| {
            ran.fetch_add(1, SeqCst);
            if task == 120 {
                end.store(120, SeqCst);
                crew.interrupt();
            }
        });
        assert_eq!(ran.into_inner(), 121);
    }
}

#[test]
fn who_comes_late_loses_its_part_and_works_for_others() {
    let rows: Vec<Vec<u32>> = (0..64u32).map(|n| n.checked_sub(8).into_iter().collect()).collect();
    let mut crew = crew(&rows, std::slice::from_ref(&(0..64)), 2, 3);
    let mut of_the_second = || {
        crew.begin(0, &(0..64));
        let ran = [0, 1].map(|_| AtomicUsize::new(0));
        let work = |number: usize| {
            let wait = || std::thread::sleep(std::time::Duration::from_micros(200));
            let run = |task| {
                count(&ran[number])(task);
                wait();
            };
            crew.worker(number).work(|_| true, run);
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(std::time::Duration::from_millis(5));
                work(1);
            });
            work(0);
        });
        let [first, second] = ran.map(AtomicUsize::into_inner);
        assert_eq!(first + second, 64);
        second
    };
    // On busy cores the second worker may arrive after everything is done.
    assert!((0..50).any(|_| of_the_second() > 4));
}
