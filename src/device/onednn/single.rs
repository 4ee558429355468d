//! Keeps the library on the calling thread: its regions would otherwise run on OpenMP's threads.
#![allow(unsafe_code)]

use std::ffi::c_int;

use libloading::{Error, Library};

/// The setting of the library's OpenMP runtime that decides how many threads a region gets. It
/// belongs to the calling thread, and any other library may change it at any time.
pub struct Single {
    get_threads: unsafe extern "C" fn() -> c_int,
    set_threads: unsafe extern "C" fn(c_int),
}

impl Single {
    /// Looks up the functions in a library that depends on an OpenMP runtime.
    ///
    /// # Errors
    /// If a function is missing.
    ///
    /// # Safety
    /// The library's functions of these names are OpenMP's, and the library is never closed.
    pub unsafe fn load(library: &Library) -> Result<Self, Error> {
        // SAFETY: these are the signatures of OpenMP 3.0.
        unsafe {
            Ok(Single {
                get_threads: *library.get(c"omp_get_max_threads")?,
                set_threads: *library.get(c"omp_set_num_threads")?,
            })
        }
    }

    /// Runs `body`, in which regions get the calling thread alone.
    pub fn run<T>(&self, body: impl FnOnce() -> T) -> T {
        let _guard = Guard::new(self);
        body()
    }
}

/// Restores the setting when dropped.
struct Guard<'a> {
    single: &'a Single,
    before: c_int,
}

impl<'a> Guard<'a> {
    fn new(single: &'a Single) -> Self {
        // SAFETY: plain settings of the runtime.
        let before = unsafe { (single.get_threads)() };
        if before != 1 {
            // SAFETY: as above.
            unsafe { (single.set_threads)(1) };
        }
        Guard { single, before }
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if self.before != 1 {
            // SAFETY: as above.
            unsafe { (self.single.set_threads)(self.before) };
        }
    }
}
