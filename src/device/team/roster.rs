//! The workers, and how they and the calling thread share the chunks of a region.
//!
//! Each seat has a share of the chunks, neighbours in memory, which its thread claims first: a
//! thread that runs the same region again finds its share in its cache. After that it claims what
//! is left of other shares. Whoever takes a seat is counted until it leaves, and the region lasts
//! that long; those who come after its end find no seat.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::mem::transmute;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, TryLockError};
use std::thread::{Builder, JoinHandle};

use smallvec::SmallVec;

use super::place::{Danger, Place};
use super::region::Region;
use super::wait::Signal;
use super::{Error, Result, share};
use crate::device::{cpu, heap};

/// Address space for a worker's stack.
const STACK_BYTES: usize = 4 << 20;
/// The most shares of a region.
const MOST_SHARES: usize = 64;
/// Set in [`Roster::seats`] while a region can be joined.
const OPEN: u32 = 1 << 31;
/// One free seat in [`Roster::seats`]; the number of workers that have one stands below it.
const SEAT: u32 = 1 << 16;

/// See the module's documentation.
pub struct Roster {
    /// Whether the region can be joined, its free seats, and how many workers have taken one.
    seats: Signal,
    region: Posted,
    shares: [Share; MOST_SHARES],
    /// Raised when there is something to do.
    bell: Signal,
    /// How many workers there shall be.
    wanted: AtomicUsize,
    /// Whether a thread slept at the end of its region, and none has called workers since.
    has_slept: AtomicBool,
    danger: Danger,
    /// For how many nanoseconds calling threads have waited for workers to leave a region.
    pub waited: AtomicU64,
    /// Locked by the thread whose region runs.
    workers: Mutex<Vec<Worker>>,
}

struct Worker {
    thread: JoinHandle<()>,
    place: Arc<Place>,
}

/// The region that runs, and how many seats it has.
#[repr(align(128))]
struct Posted(UnsafeCell<Option<(&'static Region<'static>, usize)>>);

// SAFETY: it is written by the thread that holds `Roster::workers` while nobody can or does have a
// seat, and read by those who have one.
unsafe impl Sync for Posted {}

/// The chunks of a share that nobody has claimed: the end above the next one.
#[repr(align(128))]
struct Share(AtomicU64);

impl Share {
    fn set(&self, chunks: std::ops::Range<usize>) {
        self.0.store((chunks.end as u64) << 32 | chunks.start as u64, Relaxed);
    }

    fn claim(&self) -> Option<usize> {
        let is_left = |both: u64| both as u32 as u64 != both >> 32;
        let take = |both: u64| is_left(both).then(|| both + 1);
        let both = self.0.fetch_update(Relaxed, Relaxed, take).ok()?;
        Some(both as u32 as usize)
    }
}

impl Roster {
    pub const fn new() -> Self {
        Roster {
            seats: Signal::new(),
            region: Posted(UnsafeCell::new(None)),
            shares: [const { Share(AtomicU64::new(0)) }; MOST_SHARES],
            bell: Signal::new(),
            wanted: AtomicUsize::new(0),
            has_slept: AtomicBool::new(false),
            danger: Danger::new(),
            waited: AtomicU64::new(0),
            workers: Mutex::new(Vec::new()),
        }
    }

    /// Runs a region on up to `threads` threads, the calling one among them. While another thread's
    /// region runs, the calling one runs all of it.
    ///
    /// # Errors
    /// [`Error::Device`] or [`Error::OutOfMemory`] if workers cannot be started; then nothing runs.
    pub fn run(&'static self, region: &Region, threads: usize) -> Result<()> {
        let mut workers = match self.workers.try_lock() {
            Ok(workers) => workers,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                region.run_all();
                return Ok(());
            }
        };
        self.resize(&mut workers, super::size() - 1)?;
        self.post(region, threads);
        self.ring(&workers, threads - 1);
        self.take_part(region, threads, 0);
        self.seats.clear(OPEN);
        let has_slept = || self.has_slept.store(true, Relaxed);
        let (_, waited) = self.seats.wait(|seats| seats % SEAT > 0, has_slept);
        if !waited.is_zero() {
            self.waited.fetch_add(waited.as_nanos() as u64, Relaxed);
        }
        Ok(())
    }

    /// Whether a worker sleeps, or has not begun.
    pub fn sleeps(&self) -> bool {
        self.wanted.load(Relaxed) + 1 < super::size() || self.bell.has_sleepers()
    }

    /// Opens a region to the workers.
    fn post(&self, region: &Region, threads: usize) {
        // SAFETY: the reference is used only by who has a seat, and `run` returns after all have
        // left.
        let lasting = unsafe { transmute::<&Region, &'static Region<'static>>(region) };
        // SAFETY: the last region is over, and nobody has a seat.
        unsafe { *self.region.0.get() = Some((lasting, threads)) };
        let shares = threads.min(MOST_SHARES);
        for (n, of_one) in self.shares[..shares].iter().enumerate() {
            of_one.set(share(region.chunks, 1, shares, n));
        }
        self.seats.set(OPEN + (threads as u32 - 1) * SEAT);
    }

    /// Calls up to `most` workers, and keeps those off the calling thread's processor who might wake
    /// up there, or on whose processor that thread has just woken up.
    fn ring(&self, workers: &[Worker], most: usize) {
        let has_slept = self.has_slept.load(Relaxed);
        let near = { workers.iter().map(|worker| &*worker.place) }
            .filter(|place| has_slept || place.is_asleep())
            .take(most);
        let is_danger = self.danger.is_there(near.clone());
        let apart = near.filter(|_| is_danger).map(Place::elsewhere);
        let apart: SmallVec<[_; 4]> = apart.collect();
        self.bell.add(1, most);
        drop(apart);
        if has_slept {
            self.has_slept.store(false, Relaxed);
        }
    }

    /// Runs chunks until all are claimed.
    fn take_part(&self, region: &Region, threads: usize, seat: usize) {
        let shares = &self.shares[..threads.min(MOST_SHARES)];
        let (others, own) = shares.split_at(seat % shares.len());
        region.run(seat, || own.iter().chain(others).find_map(Share::claim));
    }

    /// Takes a seat of whatever region runs, and part in it.
    fn help(&self) {
        let free = |seats: u32| (seats & !OPEN) / SEAT;
        let take = |seats: u32| (seats & OPEN > 0 && free(seats) > 0).then(|| seats - SEAT + 1);
        let Some(seats) = self.seats.change(take) else { return };
        // SAFETY: this thread has a seat, so the region was posted and lasts.
        let posted = unsafe { *self.region.0.get() };
        let (region, threads) = posted.expect("a region is posted before it is open");
        self.take_part(region, threads, threads - free(seats) as usize);
        self.seats.leave(|seats| seats & OPEN == 0 && seats % SEAT == 1);
    }

    fn work(&self, number: usize, place: &Place) {
        super::unbind();
        let mut heard = self.bell.get();
        while number < self.wanted.load(Acquire) {
            self.help();
            (heard, _) = self.bell.wait(|rung| rung == heard, || place.sleeps());
            place.wakes();
        }
    }

    /// Starts or ends workers.
    fn resize(&'static self, workers: &mut Vec<Worker>, wanted: usize) -> Result<()> {
        if workers.len() == wanted {
            return Ok(());
        }
        self.wanted.store(wanted, Release);
        if workers.len() > wanted {
            self.bell.add(1, usize::MAX);
            workers.drain(wanted..).for_each(|worker| drop(worker.thread.join()));
        }
        while workers.len() < wanted {
            let number = workers.len();
            let thread = Builder::new().name(format!("singa_rs {}", number + 1));
            let place = Arc::new(Place::new());
            let own = place.clone();
            let begun = thread.stack_size(STACK_BYTES).spawn(move || self.work(number, &own));
            workers.push(Worker { thread: begun.map_err(|_| refusal(wanted - number))?, place });
        }
        Ok(())
    }
}

/// The error if this many threads cannot be started: out of memory if their stacks do not fit.
fn refusal(threads: usize) -> Error {
    let bytes = threads.saturating_mul(STACK_BYTES);
    if !heap::has(bytes) {
        return cpu::device().pool().out_of_memory("start threads", bytes);
    }
    let message = format!(
        "{threads} more threads cannot be started: the limit of processes is reached; \
         set_num_threads(1) needs none"
    );
    Error::device("start threads", message)
}
