//! Parallel regions on the threads of GCC's OpenMP library, which is loaded at run time.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_uint, c_void};

use libloading::{Error, Library};

use super::openmp::OpenMp;
use super::region::Region;

type Body = unsafe extern "C" fn(*mut c_void);

/// Entry points of libgomp.
pub struct Gomp {
    parallel: unsafe extern "C" fn(Body, *mut c_void, c_uint, c_uint),
    thread_num: unsafe extern "C" fn() -> c_int,
    num_threads: unsafe extern "C" fn() -> c_int,
    settings: OpenMp,
}

/// A region and the library that runs it, passed through the C call.
struct Call<'a> {
    gomp: &'a Gomp,
    region: &'a Region<'a>,
}

impl Gomp {
    /// Opens the library, which is never closed because its threads live on.
    pub fn open() -> Result<Gomp, Error> {
        // SAFETY: libgomp's initialisers only read the environment.
        let library = unsafe { Library::new("libgomp.so.1") }?;
        // SAFETY: these are the signatures of libgomp's ABI (GOMP_4.0, OMP_1.0).
        let gomp = unsafe {
            Gomp {
                parallel: *library.get(c"GOMP_parallel")?,
                thread_num: *library.get(c"omp_get_thread_num")?,
                num_threads: *library.get(c"omp_get_num_threads")?,
                settings: OpenMp::load(&library)?,
            }
        };
        std::mem::forget(library);
        Ok(gomp)
    }

    /// Runs a region on `threads` threads, or on fewer if that many are not available. `threads` is
    /// always the team's size: libgomp ends the threads that a smaller region does not use, and
    /// starting them again is slow.
    pub fn parallel(&self, region: &Region, threads: usize) {
        let threads = self.settings.limited(threads);
        let mut call = Call { gomp: self, region };
        let data = (&raw mut call).cast();
        // SAFETY: `call` outlives the region, which ends before the function returns.
        let all = || unsafe { (self.parallel)(run, data, threads as c_uint, 0) };
        let is_done =
            self.settings.grants(threads) && self.settings.with_threads(threads, all).is_ok();
        if !is_done {
            region.run(0, 1);
        }
    }
}

unsafe extern "C" fn run(data: *mut c_void) {
    // SAFETY: `data` is the `Call` that `Gomp::parallel` passed; threads only read it.
    let call = unsafe { &*data.cast::<Call>() };
    // SAFETY: both take no argument and query the calling thread.
    let (thread, threads) = unsafe { ((call.gomp.thread_num)(), (call.gomp.num_threads)()) };
    call.region.run(thread as usize, threads as usize);
}
