//! How many threads the process may use: by its processors, its control group and its environment.
#![allow(unsafe_code)]

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::{env, fs};

use super::system::milliseconds;
use crate::device::limits::control_groups;

/// The processors that affinity and the control group's quota (rounded up) allow, but at most
/// `OMP_NUM_THREADS` and `OMP_THREAD_LIMIT`. Counted anew every second.
pub fn allowed_threads() -> usize {
    static COUNTED: AtomicU64 = AtomicU64::new(u64::MAX);
    static ALLOWED: AtomicUsize = AtomicUsize::new(1);
    let now = milliseconds() / 1000;
    if COUNTED.load(Relaxed) != now {
        ALLOWED.store(count(), Relaxed);
        COUNTED.store(now, Relaxed);
    }
    ALLOWED.load(Relaxed)
}

fn count() -> usize {
    let quota = quota().map_or(usize::MAX, |quota| (quota.ceil() as usize).max(1));
    processors().min(quota).min(variables())
}

/// The bound by the environment, which is read once.
fn variables() -> usize {
    static BOUND: OnceLock<usize> = OnceLock::new();
    *BOUND.get_or_init(|| {
        let texts = ["OMP_NUM_THREADS", "OMP_THREAD_LIMIT"].map(env::var);
        texts.iter().flatten().filter_map(|text| omp_threads(text)).min().unwrap_or(usize::MAX)
    })
}

/// The outermost level of OpenMP's list of thread counts, if it is a positive integer.
fn omp_threads(text: &str) -> Option<usize> {
    let first = text.split(',').next()?.trim();
    first.parse().ok().filter(|&n| n > 0)
}

/// How many processors the main thread may run on. Counted once if OpenMP binds that thread to some
/// of them when it is loaded.
fn processors() -> usize {
    static FIRST: OnceLock<usize> = OnceLock::new();
    let first = *FIRST.get_or_init(affinity::processors);
    if is_bound_by_openmp() { first } else { affinity::processors() }
}

fn is_bound_by_openmp() -> bool {
    static IS_BOUND: OnceLock<bool> = OnceLock::new();
    let binds = ["OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY"];
    *IS_BOUND.get_or_init(|| binds.iter().any(|name| env::var_os(name).is_some()))
}

/// Lets the calling thread, a new worker, run on all processors that the process had before OpenMP
/// bound the thread that starts it.
pub fn unbind() {
    if is_bound_by_openmp() {
        affinity::unbind();
    }
}

/// The processors' time that the process's control group grants, in processors; `None` without a
/// limit. The least of the group's and its ancestors' counts.
pub fn quota() -> Option<f64> {
    let quota = |(is_first_version, folder): &(bool, PathBuf)| own_limit(*is_first_version, folder);
    control_groups("cpu").iter().filter_map(quota).reduce(f64::min)
}

fn own_limit(is_first_version: bool, folder: &Path) -> Option<f64> {
    let read = |path: PathBuf| fs::read_to_string(path).ok();
    let text = if is_first_version {
        read(folder.join("cpu.cfs_quota_us"))? + " " + &read(folder.join("cpu.cfs_period_us"))?
    } else {
        read(folder.join("cpu.max"))?
    };
    parse_limit(&text)
}

/// Quota and period in microseconds; `max` or -1 mean no limit.
fn parse_limit(text: &str) -> Option<f64> {
    let mut numbers = text.split_whitespace().map(|word| word.parse::<f64>().ok());
    let (quota, period) = (numbers.next()??, numbers.next()??);
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

#[cfg(target_os = "linux")]
mod affinity {
    use std::sync::OnceLock;

    use libc::{CPU_COUNT, cpu_set_t};

    use crate::device::team::system::{allow, processors_of};

    /// The processors that the main thread may run on, as found first.
    static FIRST: OnceLock<cpu_set_t> = OnceLock::new();

    /// How many processors the main thread may run on.
    pub fn processors() -> usize {
        // SAFETY: the call takes nothing.
        let main = unsafe { libc::getpid() };
        let counted = processors_of(main).map(|set| {
            FIRST.get_or_init(|| set);
            // SAFETY: a set of processors is plain bits.
            unsafe { CPU_COUNT(&set) as usize }
        });
        let others = || std::thread::available_parallelism().map_or(1, usize::from);
        counted.filter(|&count| count > 0).unwrap_or_else(others)
    }

    /// Lets the calling thread run on the processors found first; if the system refuses, it stays
    /// where it is.
    pub fn unbind() {
        if let Some(set) = FIRST.get() {
            allow(0, set);
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod affinity {
    /// How many processors the process may use.
    pub fn processors() -> usize {
        std::thread::available_parallelism().map_or(1, usize::from)
    }

    /// Nothing binds threads here.
    pub fn unbind() {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_counts_are_read_as_openmp_does() {
        assert_eq!(omp_threads("3"), Some(3));
        assert_eq!(omp_threads(" 4, 2"), Some(4));
        assert_eq!(omp_threads("0"), None);
        assert_eq!(omp_threads("many"), None);
    }

    #[test]
    fn quotas_are_read_in_both_versions_of_control_groups() {
        assert_eq!(parse_limit("150000 100000\n"), Some(1.5));
        assert_eq!(parse_limit("50000\n 100000\n"), Some(0.5));
        for none in ["max 100000", "-1 100000", "", "100000", "0 100000"] {
            assert_eq!(parse_limit(none), None, "{none}");
        }
    }

    #[test]
    fn at_least_one_thread_is_allowed() {
        assert!(allowed_threads() >= 1 && processors() >= allowed_threads());
    }
}
