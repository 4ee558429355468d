use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use super::*;

#[test]
fn every_chunk_runs_once() {
    for (threads, chunks) in [1, 2, 3, 8].iter().flat_map(|t| [0, 1, 2, 3, 500].map(|c| (t, c))) {
        set_size(*threads);
        let counts: Vec<AtomicUsize> = (0..chunks).map(|_| AtomicUsize::new(0)).collect();
        let body = |chunk: usize| {
            counts[chunk].fetch_add(1, SeqCst);
        };
        parallel(chunks, &body).unwrap();
        assert!(counts.iter().all(|c| c.load(SeqCst) == 1), "{counts:?}");
    }
}

#[test]
fn seats_are_never_shared_and_never_more_than_asked_for() {
    set_size(8);
    for seats in 1..=4 {
        let taken: Vec<AtomicUsize> = (0..seats).map(|_| AtomicUsize::new(0)).collect();
        for _ in 0..200 {
            seated(32, seats, &|_, seat| {
                assert_eq!(taken[seat].fetch_add(1, SeqCst), 0, "seat {seat} is shared");
                std::hint::spin_loop();
                taken[seat].fetch_sub(1, SeqCst);
            })
            .unwrap();
        }
    }
}

#[test]
fn a_panic_is_an_error_and_the_other_chunks_run() {
    set_size(3);
    let count = AtomicUsize::new(0);
    let outcome = parallel(4, &|chunk| {
        assert!(chunk != 1, "chunk one");
        count.fetch_add(1, SeqCst);
    });
    assert!(matches!(outcome, Err(Error::Internal { message, .. }) if message == "chunk one"));
    assert_eq!(count.load(SeqCst), 3);
    parallel(4, &|_| {}).unwrap();
}

#[test]
fn inner_regions_run_on_the_thread_of_the_outer() {
    set_size(3);
    let pairs = Mutex::new(Vec::new());
    parallel(4, &|outer| {
        let thread = std::thread::current().id();
        parallel(3, &|inner| {
            assert_eq!(thread, std::thread::current().id());
            pairs.lock().unwrap().push((outer, inner));
        })
        .unwrap();
    })
    .unwrap();
    let mut pairs = pairs.into_inner().unwrap();
    pairs.sort_unstable();
    assert_eq!(pairs.len(), 12);
    pairs.dedup();
    assert_eq!(pairs.len(), 12);
    assert!(!region::is_inside());
}

#[test]
fn regions_of_several_threads_do_not_mix() {
    set_size(2);
    let sums = std::thread::scope(|scope| {
        let callers = [1usize, 2, 3].map(|k| {
            scope.spawn(move || {
                let sum = AtomicUsize::new(0);
                for _ in 0..200 {
                    let add = |chunk: usize| {
                        sum.fetch_add(k * chunk, SeqCst);
                    };
                    parallel(5, &add).unwrap();
                }
                sum.into_inner()
            })
        });
        callers.map(|caller| caller.join().unwrap())
    });
    assert_eq!(sums, [2000, 4000, 6000]);
}

#[test]
fn a_team_that_grows_and_shrinks_loses_no_chunk() {
    let sum = AtomicUsize::new(0);
    for round in 0..300 {
        set_size([2, 5, 1, 3][round % 4]);
        parallel(7, &|chunk| {
            sum.fetch_add(chunk, SeqCst);
        })
        .unwrap();
    }
    assert_eq!(sum.into_inner(), 300 * 21);
}

/// Stops the team's workers for a while, one after the other, until told to end. A signal handler
/// sleeps on the worker's thread, as if the system had given its processor to somebody else.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn stop_workers(is_over: &std::sync::atomic::AtomicBool) {
    extern "C" fn sleep(_: libc::c_int) {
        let short = libc::timespec { tv_sec: 0, tv_nsec: 300_000 };
        // SAFETY: nanosleep may be called in a signal handler.
        unsafe { libc::nanosleep(&short, std::ptr::null_mut()) };
    }
    let workers = || {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
        let is_worker = |task: &std::fs::DirEntry| {
            let name = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
            name.starts_with("singa_rs ")
        };
        tasks.filter(is_worker).map(|task| task.file_name().to_str().unwrap().parse().unwrap())
    };
    // SAFETY: the handler is a function that stays, and nobody else uses this signal.
    unsafe { libc::signal(libc::SIGUSR2, sleep as *const () as libc::sighandler_t) };
    while !is_over.load(SeqCst) {
        let stop = |thread: libc::pid_t| {
            // SAFETY: a signal with a handler to a thread of this process.
            unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, libc::SIGUSR2) };
        };
        workers().for_each(stop);
        std::thread::sleep(std::time::Duration::from_micros(500));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn workers_that_are_stopped_hold_up_nothing_but_their_chunk() {
    set_size(4);
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| stop_workers(&is_over));
        for round in 0..10_000_usize {
            let sums: [AtomicUsize; 6] = Default::default();
            parallel(6, &|chunk| {
                (0..200).for_each(|_| std::hint::spin_loop());
                sums[chunk].fetch_add(round + chunk, SeqCst);
            })
            .unwrap();
            let right = |(chunk, sum): (usize, &AtomicUsize)| sum.load(SeqCst) == round + chunk;
            assert!(sums.iter().enumerate().all(right), "round {round}");
        }
        is_over.store(true, SeqCst);
    });
}

#[test]
fn shares_cover_everything_once() {
    for (len, grain, parts) in [(10, 4, 3), (0, 1, 2), (5, 1, 8), (64, 64, 2)] {
        let ranges: Vec<_> = (0..parts).map(|p| share(len, grain, parts, p)).collect();
        assert_eq!(ranges.iter().map(|r| r.len()).sum::<usize>(), len);
        assert!(ranges.windows(2).all(|w| w[0].end == w[1].start));
    }
}

#[test]
fn what_is_made_stands_in_order_and_a_panic_is_an_error() {
    set_size(3);
    assert!(map(0, |n| n).unwrap().is_empty());
    assert_eq!(map(50, |n| 2 * n).unwrap(), Vec::from_iter((0..50).map(|n| 2 * n)));
    let made = map(4, |n| assert!(n != 2, "two"));
    assert!(matches!(made, Err(Error::Internal { message, .. }) if message == "two"));
}

#[test]
fn the_error_is_that_of_the_first_chunk_that_fails() {
    for _ in 0..200 {
        let failing = |chunk: usize, _: usize| {
            if chunk >= 7 {
                let op = "test".into();
                return Err(Error::Index { op, index: chunk as i64, size: 7 });
            }
            (0..chunk * 50).for_each(|_| std::hint::spin_loop());
            Ok(())
        };
        let error = each(64, 4, failing).unwrap_err();
        assert!(matches!(error, Error::Index { index: 7, .. }), "{error}");
    }
}
