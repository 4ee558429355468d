//! The process's thread team: the OpenMP team of the system's libgomp, which oneDNN uses too, so
//! that no two pools compete for the same processors; without libgomp, rayon.

mod gomp;
mod openmp;
mod region;
mod spare;
mod threads;

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::error::{Error, Result};
use gomp::Gomp;
pub use openmp::OpenMp;
use region::Region;

/// The team's size; 0 means [`allowed_threads`].
static SIZE: AtomicUsize = AtomicUsize::new(0);

/// How many threads the process may use: the processors that affinity and control group allow, but
/// at most `OMP_NUM_THREADS` and `OMP_THREAD_LIMIT`.
pub fn allowed_threads() -> usize {
    // Read once: OpenMP may bind the first thread to one processor later.
    static ALLOWED: OnceLock<usize> = OnceLock::new();
    *ALLOWED.get_or_init(|| {
        let processors = std::thread::available_parallelism().map_or(1, |n| n.get());
        let variables = ["OMP_NUM_THREADS", "OMP_THREAD_LIMIT"].map(std::env::var);
        let bounds = variables.iter().flatten().filter_map(|text| omp_threads(text));
        bounds.fold(processors, usize::min)
    })
}

/// The outermost level of OpenMP's list of thread counts, if it is a positive integer.
fn omp_threads(text: &str) -> Option<usize> {
    let first = text.split(',').next()?.trim();
    first.parse().ok().filter(|&n| n > 0)
}

/// How many threads a region gets.
pub fn size() -> usize {
    match SIZE.load(Relaxed) {
        0 => allowed_threads(),
        threads => threads,
    }
}

/// Sets how many threads regions get. Each change makes the team start or end threads, so this
/// follows the device's setting and not the width of single kernels.
pub fn set_size(threads: usize) {
    SIZE.store(threads, Relaxed);
}

/// Runs `body(part)` once for every part in `0..parts`, each part on one thread. A single part, and
/// a call from inside another region, run on the calling thread.
///
/// # Errors
/// [`Error::Internal`] if a body panicked; [`Error::Device`] if threads cannot be started.
pub fn parallel(parts: usize, body: &(dyn Fn(usize) + Sync)) -> Result<()> {
    let region = Region::new(parts, body);
    if parts <= 1 || size() == 1 || region::is_inside() {
        region.run(0, 1);
    } else {
        match team() {
            Team::Gomp(gomp) => gomp.parallel(&region, size()),
            Team::Threads { .. } => threads::parallel(&region, size())?,
        }
    }
    region.finish()
}

/// The results of `make(n)` for every `n` in `0..count`, in order. Each thread takes the next `n`
/// when it is done with one, so calls may take different times.
///
/// # Errors
/// As [`parallel`].
pub fn map<T: Send>(count: usize, make: impl Fn(usize) -> T + Sync) -> Result<Vec<T>> {
    let (next, made) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(count)));
    let take = || Some(next.fetch_add(1, Relaxed)).filter(|&n| n < count);
    parallel(size().min(count), &|_| {
        while let Some(n) = take() {
            let one = make(n);
            made.lock().unwrap_or_else(PoisonError::into_inner).push((n, one));
        }
    })?;
    let mut made = made.into_inner().unwrap_or_else(PoisonError::into_inner);
    made.sort_unstable_by_key(|&(n, _)| n);
    Ok(made.into_iter().map(|(_, one)| one).collect())
}

/// Part `part` of `0..len`, split into `parts` nearly equal ranges whose bounds are multiples of
/// `grain` (except the last).
pub fn share(len: usize, grain: usize, parts: usize, part: usize) -> Range<usize> {
    let grains = len.div_ceil(grain);
    let bound = |p: usize| (grains * p / parts * grain).min(len);
    bound(part)..bound(part + 1)
}

/// The team's backend: `libgomp` or `rayon`.
pub fn backend() -> &'static str {
    match team() {
        Team::Gomp(_) => "libgomp",
        Team::Threads { .. } => "rayon",
    }
}

/// A warning about the team for the user, returned only once.
pub fn take_warning() -> Option<String> {
    static TOLD: AtomicBool = AtomicBool::new(false);
    match team() {
        Team::Threads { missing: Some(reason) } if !TOLD.swap(true, Relaxed) => Some(format!(
            "libgomp.so.1 cannot be opened ({reason}), so threads are rayon's and convolution and \
             matrix multiplication are slower; apt-get install libgomp1 provides it"
        )),
        _ => None,
    }
}

enum Team {
    Gomp(Gomp),
    /// rayon, by choice or because libgomp is missing.
    Threads {
        missing: Option<String>,
    },
}

fn team() -> &'static Team {
    static TEAM: OnceLock<Team> = OnceLock::new();
    TEAM.get_or_init(|| {
        allowed_threads();
        match std::env::var("SINGA_RS_TEAM").as_deref() {
            Ok("rayon") => Team::Threads { missing: None },
            _ => open(),
        }
    })
}

fn open() -> Team {
    match Gomp::open() {
        Ok(gomp) => Team::Gomp(gomp),
        Err(error) => Team::Threads { missing: Some(error.to_string()) },
    }
}

#[cfg(test)]
mod tests;
