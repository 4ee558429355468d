//! The settings of an OpenMP runtime that decide how many threads a region gets.
//!
//! They belong to the calling thread, are initialised from the environment, and may be changed by
//! any other library at any time. So they are read before each region, set to what it needs, and
//! restored after it.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::ffi::c_int;
use std::panic::resume_unwind;
use std::thread;

use libloading::{Error as Missing, Library};

use super::spare;
use crate::error::Result;

type Get = unsafe extern "C" fn() -> c_int;
type Set = unsafe extern "C" fn(c_int);

/// Entry points of an OpenMP runtime.
pub struct OpenMp {
    get_threads: Get,
    set_threads: Set,
    get_dynamic: Get,
    set_dynamic: Set,
    get_levels: Get,
    set_levels: Set,
    level: Get,
    limit: Get,
    /// The most threads that will ever be granted.
    most: usize,
}

thread_local! {
    /// How many threads the calling thread's team had in its last region.
    static TEAM: Cell<usize> = const { Cell::new(1) };
}

impl OpenMp {
    /// Looks up the functions in an OpenMP runtime, or in a library that depends on one.
    ///
    /// # Errors
    /// If a function is missing.
    ///
    /// # Safety
    /// The library's functions of these names are OpenMP's, and the library is never closed.
    pub unsafe fn load(library: &Library) -> std::result::Result<Self, Missing> {
        // SAFETY: these are the signatures of OpenMP 3.0.
        unsafe {
            let limit: Get = *library.get(c"omp_get_thread_limit")?;
            Ok(OpenMp {
                get_threads: *library.get(c"omp_get_max_threads")?,
                set_threads: *library.get(c"omp_set_num_threads")?,
                get_dynamic: *library.get(c"omp_get_dynamic")?,
                set_dynamic: *library.get(c"omp_set_dynamic")?,
                get_levels: *library.get(c"omp_get_max_active_levels")?,
                set_levels: *library.get(c"omp_set_max_active_levels")?,
                level: *library.get(c"omp_get_active_level")?,
                limit,
                most: limit().max(1) as usize,
            })
        }
    }

    /// `width`, but no more threads than will ever be granted (`OMP_THREAD_LIMIT`).
    pub fn limited(&self, width: usize) -> usize {
        width.min(self.most)
    }

    /// Runs `body`, in which regions get exactly `width` threads.
    ///
    /// # Errors
    /// [`crate::Error::Device`] or [`crate::Error::OutOfMemory`] if threads cannot be started.
    pub fn with_threads<T>(&self, width: usize, body: impl FnOnce() -> T) -> Result<T> {
        if self.grants(width) {
            return self.with_settings(width, body);
        }
        let mut answer = None;
        let work = OnAnother(|| answer = Some(self.with_settings(width, body)));
        thread::scope(|scope| {
            let begun = thread::Builder::new().spawn_scoped(scope, move || work.run());
            let done = begun.map_err(|_| spare::refusal(1))?.join();
            done.unwrap_or_else(|panic| resume_unwind(panic));
            Ok(())
        })?;
        answer.expect("the thread has ended without a panic")
    }

    /// Whether regions of the calling thread can get this many threads. Regions nested in another
    /// library's get one thread, and limits may be lower there.
    pub fn grants(&self, width: usize) -> bool {
        // SAFETY: both take no argument and query the calling thread.
        width <= 1 || unsafe { (self.level)() == 0 && (self.limit)() as usize >= width }
    }

    fn with_settings<T>(&self, width: usize, body: impl FnOnce() -> T) -> Result<T> {
        if width > 1 {
            spare::for_threads(TEAM.get(), width)?;
            TEAM.set(width);
        }
        let _threads = Setting::new(self.get_threads, self.set_threads, |_| width as c_int);
        if width <= 1 {
            return Ok(body());
        }
        let _dynamic = Setting::new(self.get_dynamic, self.set_dynamic, |_| 0);
        let _levels = Setting::new(self.get_levels, self.set_levels, |levels| levels.max(1));
        Ok(body())
    }
}

/// A guard that restores a setting of the calling thread when dropped.
struct Setting {
    before: c_int,
    now: c_int,
    set: Set,
}

impl Setting {
    fn new(get: Get, set: Set, wanted: impl FnOnce(c_int) -> c_int) -> Self {
        // SAFETY: both are plain settings of the runtime.
        let before = unsafe { get() };
        let now = wanted(before);
        if now != before {
            // SAFETY: as above.
            unsafe { set(now) };
        }
        Setting { before, now, set }
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        if self.now != self.before {
            // SAFETY: a plain setting of the runtime.
            unsafe { (self.set)(self.before) };
        }
    }
}

/// Work that another thread runs while this one waits.
struct OnAnother<F>(F);

// SAFETY: the creating thread blocks until the work is done, as if it had run the work itself; what
// runs this way (a region, calls of oneDNN) keeps no state of its thread.
unsafe impl<F> Send for OnAnother<F> {}

impl<F: FnOnce()> OnAnother<F> {
    fn run(self) {
        (self.0)();
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::{c_uint, c_void};
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use super::*;

    type Body = unsafe extern "C" fn(*mut c_void);
    type Parallel = unsafe extern "C" fn(Body, *mut c_void, c_uint, c_uint);

    /// GCC's runtime, if it is installed.
    fn opened() -> Option<(OpenMp, Parallel)> {
        // SAFETY: libgomp's initialisers only read the environment; it stays open.
        let library = unsafe { Library::new("libgomp.so.1") }.ok()?;
        let library: &'static Library = Box::leak(Box::new(library));
        // SAFETY: these are OpenMP's functions, with their signatures.
        unsafe { Some((OpenMp::load(library).ok()?, *library.get(c"GOMP_parallel").ok()?)) }
    }

    unsafe extern "C" fn count(threads: *mut c_void) {
        // SAFETY: `threads` points to the counter that the function `threads` passes.
        unsafe { &*threads.cast::<AtomicUsize>() }.fetch_add(1, SeqCst);
    }

    /// How many threads run a region that asks for three.
    fn threads(parallel: Parallel) -> usize {
        let count_of = AtomicUsize::new(0);
        // SAFETY: the counter outlives the region.
        unsafe { parallel(count, (&raw const count_of).cast_mut().cast(), 3, 0) };
        count_of.into_inner()
    }

    #[test]
    fn all_come_whatever_was_set_and_settings_are_put_back() {
        let Some((openmp, parallel)) = opened() else { return };
        let settings: [(Get, Set, &[c_int]); 3] = [
            (openmp.get_threads, openmp.set_threads, &[1, 5]),
            (openmp.get_dynamic, openmp.set_dynamic, &[0, 1]),
            (openmp.get_levels, openmp.set_levels, &[0, 1, 4]),
        ];
        for (get, set, values) in settings {
            for &value in values {
                // SAFETY: plain settings of the runtime.
                unsafe { set(value) };
                assert_eq!(openmp.with_threads(3, || threads(parallel)).unwrap(), 3);
                // SAFETY: as above.
                assert_eq!(unsafe { get() }, value);
            }
        }
    }

    #[test]
    fn all_come_within_a_region_of_somebody_else_too() {
        type Asked<'a> = (&'a OpenMp, Parallel, AtomicUsize);
        unsafe extern "C" fn ask(asked: *mut c_void) {
            // SAFETY: this is the tuple passed below.
            let (openmp, parallel, sum) = unsafe { &*asked.cast::<Asked>() };
            assert!(!openmp.grants(3) && openmp.grants(1));
            let came = openmp.with_threads(3, || threads(*parallel)).unwrap();
            sum.fetch_add(came, SeqCst);
        }
        let Some((openmp, parallel)) = opened() else { return };
        let asked: Asked = (&openmp, parallel, AtomicUsize::new(0));
        // SAFETY: `asked` outlives the region.
        unsafe { parallel(ask, (&raw const asked).cast_mut().cast(), 2, 0) };
        assert_eq!(asked.2.into_inner(), 6);
    }

    #[test]
    fn a_panic_on_another_thread_is_passed_on() {
        let body = OnAnother(|| panic!("there"));
        let caught = thread::scope(|scope| scope.spawn(move || body.run()).join());
        assert!(caught.is_err());
    }
}
