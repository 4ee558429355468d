//! The end of the process: keeps track of the threads inside the engine, and makes them leave.
//!
//! When a process exits, its libraries tear down their state (oneDNN its tables) even while other
//! threads still compute. So the exiting thread first stops them: each leaves the engine after the
//! kernel that it is running, and cannot enter again.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

static IS_ENDING: AtomicBool = AtomicBool::new(false);
/// The number of threads inside the engine.
static INSIDE: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static IS_INSIDE: Cell<bool> = const { Cell::new(false) };
    static ENDS: Cell<bool> = const { Cell::new(false) };
}

/// Runs `body` inside the engine. Once the process is exiting, other threads park here forever.
pub fn inside<T>(body: impl FnOnce() -> T) -> T {
    let _scope = Scope::new(true);
    if is_over() {
        park();
    }
    body()
}

/// Runs user code from inside the engine. It counts as outside, so that nobody waits for it.
pub fn outside<T>(body: impl FnOnce() -> T) -> T {
    let _scope = Scope::new(false);
    body()
}

/// A guard that marks the calling thread as inside or outside until it is dropped.
struct Scope {
    before: bool,
}

impl Scope {
    fn new(inside: bool) -> Scope {
        Scope { before: set(inside) }
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        set(self.before);
    }
}

/// Marks the calling thread as inside or outside; returns what it was before.
fn set(inside: bool) -> bool {
    // Thread-local storage is gone on a thread that is exiting; it counts as having left.
    let before = IS_INSIDE.try_with(|place| place.replace(inside)).unwrap_or(inside);
    match (before, inside) {
        (false, true) => INSIDE.fetch_add(1, SeqCst),
        (true, false) => INSIDE.fetch_sub(1, SeqCst),
        _ => 0,
    };
    before
}

/// Whether the calling thread is inside the engine.
pub fn is_inside() -> bool {
    IS_INSIDE.try_with(Cell::get).unwrap_or(false)
}

/// Whether the process is exiting, and the calling thread is not the one that ends it.
#[inline]
pub fn is_over() -> bool {
    IS_ENDING.load(SeqCst) && !ENDS.try_with(Cell::get).unwrap_or(true)
}

/// Stops work inside the engine when the process is exiting.
///
/// # Errors
/// [`Error::Device`] if the process is exiting; nobody will read it.
#[inline]
pub fn check() -> Result<()> {
    let message = "the process ends";
    crate::ensure!(!is_over(), Error::device("run", message));
    Ok(())
}

/// Makes other threads leave the engine, and waits for them, but at most `longest`; returns whether
/// all have left.
pub fn end(longest: Duration) -> bool {
    ENDS.set(true);
    IS_ENDING.store(true, SeqCst);
    wait(longest)
}

/// Waits until no thread is inside; returns whether that happened in time.
fn wait(longest: Duration) -> bool {
    let begun = Instant::now();
    while INSIDE.load(SeqCst) > 0 {
        if begun.elapsed() > longest {
            return false;
        }
        std::thread::sleep(Duration::from_micros(100));
    }
    true
}

/// Parks the calling thread forever, outside the engine, so that nobody waits for it.
pub fn park() -> ! {
    set(false);
    loop {
        std::thread::park();
    }
}

/// Makes the calling thread [`park`] instead of exiting through `pthread_exit` if `is_due` returns
/// true.
///
/// Python ends threads this way when they return to it during finalisation. With glibc that unwinds
/// the stack, which may contain our frames; unwinding those would abort the process. A clean-up
/// handler runs before that.
#[inline]
pub fn keep_thread(is_due: fn() -> bool) {
    thread_local! {
        static IS_KEPT: Cell<bool> = const { Cell::new(false) };
    }
    if !IS_KEPT.try_with(|kept| kept.replace(true)).unwrap_or(true) {
        routine::push(is_due);
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod routine {
    use std::ffi::c_void;
    use std::sync::OnceLock;

    type Routine = unsafe extern "C" fn(*mut c_void);
    type Push = unsafe extern "C" fn(*mut c_void, Routine, *mut c_void);

    /// Storage for glibc's record of a clean-up handler, which is smaller than this.
    type Record = [usize; 8];

    /// Registers the handler for the rest of the thread's life. Its record is not on the stack, so
    /// that no frame is unwound before the handler runs.
    pub(super) fn push(is_due: fn() -> bool) {
        thread_local! {
            static RECORD: std::cell::OnceCell<Box<Record>> = const { std::cell::OnceCell::new() };
        }
        let Some(push) = function() else { return };
        let _ = RECORD.try_with(|record| {
            let record = std::ptr::from_ref(&**record.get_or_init(Box::default)).cast_mut();
            // SAFETY: the record is written only by the thread that owns it, and lives as long as
            // the thread.
            unsafe { push(record.cast(), run, is_due as *mut c_void) };
        });
    }

    fn function() -> Option<Push> {
        static PUSH: OnceLock<Option<Push>> = OnceLock::new();
        *PUSH.get_or_init(|| {
            // SAFETY: every version of the C library that has the function has it with this
            // signature.
            unsafe {
                let found = libc::dlsym(libc::RTLD_DEFAULT, c"_pthread_cleanup_push".as_ptr());
                (!found.is_null()).then(|| std::mem::transmute::<*mut c_void, Push>(found))
            }
        })
    }

    unsafe extern "C" fn run(is_due: *mut c_void) {
        // SAFETY: it is the pointer that was passed to `push`.
        let is_due = unsafe { std::mem::transmute::<*mut c_void, fn() -> bool>(is_due) };
        if is_due() {
            super::park();
        }
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
mod routine {
    /// Other C libraries end a thread without unwinding its stack.
    pub(super) fn push(_is_due: fn() -> bool) {}
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread;

    use super::*;

    #[test]
    fn who_is_inside_is_waited_for_but_not_the_user_s_code() {
        let (told, tell) = channel();
        let (go, on) = channel::<()>();
        let worker = thread::spawn(move || {
            inside(|| {
                told.send(is_inside()).unwrap();
                on.recv().unwrap();
                outside(|| {
                    told.send(is_inside()).unwrap();
                    on.recv().unwrap();
                    inside(|| told.send(is_inside()).unwrap());
                    told.send(is_inside()).unwrap();
                    on.recv().unwrap();
                });
                on.recv().unwrap();
            });
        });
        assert!(tell.recv().unwrap());
        assert!(!wait(Duration::from_millis(10)));
        go.send(()).unwrap();
        assert!(!tell.recv().unwrap() && wait(Duration::ZERO));
        go.send(()).unwrap();
        assert!(tell.recv().unwrap() && !tell.recv().unwrap());
        go.send(()).unwrap();
        go.send(()).unwrap();
        worker.join().unwrap();
        assert!(wait(Duration::ZERO) && !is_over() && check().is_ok());
    }

    #[test]
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    fn a_thread_that_is_to_end_is_put_to_rest() {
        extern "C" fn begin(_: *mut std::ffi::c_void) -> *mut std::ffi::c_void {
            keep_thread(|| true);
            // SAFETY: no frame is unwound, because the thread parks before that.
            unsafe { libc::pthread_exit(std::ptr::null_mut()) }
        }
        let mut thread = 0;
        // SAFETY: the thread takes no argument, and is not joined.
        let is_there = unsafe {
            let nothing = std::ptr::null_mut::<libc::c_void>();
            assert_eq!(libc::pthread_create(&mut thread, nothing.cast(), begin, nothing), 0);
            thread::sleep(Duration::from_millis(100));
            libc::pthread_kill(thread, 0) == 0
        };
        assert!(is_there);
    }
}
