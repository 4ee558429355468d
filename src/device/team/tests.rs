use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use super::*;

type Run = fn(&Region) -> Result<()>;

fn on_rayon(region: &Region) -> Result<()> {
    threads::parallel(region, 3)
}

fn on_gomp(region: &Region) -> Result<()> {
    // If the library is missing, the calling thread runs the region.
    match Gomp::open() {
        Ok(gomp) => gomp.parallel(region, 3),
        Err(_) => region.run(0, 1),
    }
    Ok(())
}

const BACKENDS: [Run; 2] = [on_rayon, on_gomp];

#[test]
fn every_part_runs_once() {
    for (run, parts) in BACKENDS.iter().flat_map(|run| [1, 2, 3, 50].map(|parts| (run, parts))) {
        let counts: Vec<AtomicUsize> = (0..parts).map(|_| AtomicUsize::new(0)).collect();
        let body = |part: usize| {
            counts[part].fetch_add(1, SeqCst);
        };
        let region = Region::new(parts, &body);
        run(&region).unwrap();
        region.finish().unwrap();
        assert!(counts.iter().all(|c| c.load(SeqCst) == 1), "{counts:?}");
    }
}

#[test]
fn a_panic_is_an_error_and_the_other_parts_run() {
    for run in BACKENDS {
        let count = AtomicUsize::new(0);
        let body = |part: usize| {
            assert!(part != 1, "part one");
            count.fetch_add(1, SeqCst);
        };
        let region = Region::new(4, &body);
        run(&region).unwrap();
        assert!(
            matches!(region.finish(), Err(Error::Internal { message, .. }) if message == "part one")
        );
        assert_eq!(count.load(SeqCst), 3);
    }
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
        let workers = [1usize, 2, 3].map(|k| {
            scope.spawn(move || {
                let sum = AtomicUsize::new(0);
                for _ in 0..200 {
                    let add = |part: usize| {
                        sum.fetch_add(k * part, SeqCst);
                    };
                    parallel(5, &add).unwrap();
                }
                sum.into_inner()
            })
        });
        workers.map(|w| w.join().unwrap())
    });
    assert_eq!(sums, [2000, 4000, 6000]);
}

#[test]
fn thread_counts_are_read_as_openmp_does() {
    assert_eq!(omp_threads("3"), Some(3));
    assert_eq!(omp_threads(" 4, 2"), Some(4));
    assert_eq!(omp_threads("0"), None);
    assert_eq!(omp_threads("many"), None);
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
