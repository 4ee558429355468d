//! The process's thread team: every kernel's parallel regions run on it.
//!
//! A region is cut into chunks. The calling thread and whichever workers are there claim them one
//! at a time, so a thread that the system does not schedule holds up nothing but its own chunk.
//! What is added up together depends on sizes alone, so results depend neither on who ran a chunk
//! nor on the number of threads.

mod allowed;
mod arithmetic;
mod place;
mod region;
mod roster;
mod system;
mod wait;

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::error::{Error, Result, locked};
use allowed::unbind;
pub use allowed::{allowed_threads, quota};
use region::Region;
use roster::Roster;

/// The most chunks of a region.
pub const MOST_CHUNKS: usize = u32::MAX as usize;

/// How many chunks there are usually for each seat.
const CHUNKS_OF_SEAT: usize = 4;

/// The team's size; 0 means [`allowed_threads`].
static SIZE: AtomicUsize = AtomicUsize::new(0);

static ROSTER: Roster = Roster::new();

/// How many threads run regions: the calling one and the workers.
pub fn size() -> usize {
    match SIZE.load(Relaxed) {
        0 => allowed_threads(),
        threads => threads,
    }
}

/// Sets how many threads run regions; 0 means [`allowed_threads`]. The next region starts or ends
/// workers.
pub fn set_size(threads: usize) {
    SIZE.store(threads, Relaxed);
}

/// Whether a worker sleeps, so that it would take it long to come; also where none has begun yet.
pub fn sleeps() -> bool {
    ROSTER.sleeps()
}

/// For how long threads that called regions have waited for chunks of others since the process
/// began.
pub fn waited() -> Duration {
    Duration::from_nanos(ROSTER.waited.load(Relaxed))
}

/// Runs `body(chunk)` once for every chunk in `0..chunks`, each on one thread. A call from inside
/// another region, or while another thread's region runs, is run by the calling thread.
///
/// # Errors
/// [`Error::Internal`] if a body panicked, [`Error::Device`] or [`Error::OutOfMemory`] if workers
/// cannot be started.
pub fn parallel(chunks: usize, body: &(dyn Fn(usize) + Sync)) -> Result<()> {
    seated(chunks, usize::MAX, &|chunk, _| body(chunk))
}

/// Runs `body(chunk, seat)` once for every chunk, on at most `seats` threads. No two threads have
/// the same seat, which is less than `seats`: what a thread needs for itself, such as scratch
/// memory, is found by it.
///
/// # Errors
/// As [`parallel`].
pub fn seated(chunks: usize, seats: usize, body: &(dyn Fn(usize, usize) + Sync)) -> Result<()> {
    assert!(chunks <= MOST_CHUNKS, "{chunks} chunks");
    let region = Region::new(chunks, body);
    let most = chunks.min(seats);
    let threads = if most > 1 && !region::is_inside() { size().min(most) } else { 1 };
    if threads > 1 {
        ROSTER.run(&region, threads)?;
    } else {
        region.run_all();
    }
    region.finish()
}

/// As [`seated`] with a body that may fail; after that, no later chunks begin.
///
/// # Errors
/// That of the first chunk whose body fails, whenever it runs; as [`parallel`].
pub fn each(
    chunks: usize,
    seats: usize,
    body: impl Fn(usize, usize) -> Result<()> + Sync,
) -> Result<()> {
    let (first, failed) = (AtomicUsize::new(usize::MAX), Mutex::new(None));
    seated(chunks, seats, &|chunk, seat| {
        if chunk < first.load(Relaxed)
            && let Err(error) = body(chunk, seat)
        {
            let mut failed = locked(&failed);
            if chunk < first.fetch_min(chunk, Relaxed) {
                *failed = Some(error);
            }
        }
    })?;
    failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

/// How many chunks keep this many threads busy until the end, though some come late.
fn usual_chunks(seats: usize) -> usize {
    if seats > 1 { seats * CHUNKS_OF_SEAT } else { 1 }
}

/// Runs `body(range, seat)` for ranges that cover `0..len`, on at most `seats` threads. The bounds
/// are multiples of `grain` (except the last), and there are several ranges a seat, so that a thread
/// that comes late finds less to do.
///
/// # Errors
/// As [`parallel`].
pub fn ranges(
    len: usize,
    grain: usize,
    seats: usize,
    body: &(dyn Fn(Range<usize>, usize) + Sync),
) -> Result<()> {
    let chunks = len.div_ceil(grain).min(usual_chunks(seats));
    seated(chunks, seats, &|chunk, seat| body(share(len, grain, chunks, chunk), seat))
}

/// As [`ranges`] with a body that may fail, as in [`each`].
///
/// # Errors
/// As [`each`].
pub fn each_range(
    len: usize,
    grain: usize,
    seats: usize,
    body: impl Fn(Range<usize>, usize) -> Result<()> + Sync,
) -> Result<()> {
    let chunks = len.div_ceil(grain).min(usual_chunks(seats));
    each(chunks, seats, |chunk, seat| body(share(len, grain, chunks, chunk), seat))
}

/// The results of `make(n)` for every `n` in `0..count`, in order.
///
/// # Errors
/// As [`parallel`].
pub fn map<T: Send>(count: usize, make: impl Fn(usize) -> T + Sync) -> Result<Vec<T>> {
    let made = Mutex::new(Vec::with_capacity(count));
    parallel(count, &|n| {
        let one = make(n);
        locked(&made).push((n, one));
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

#[cfg(test)]
mod tests;
