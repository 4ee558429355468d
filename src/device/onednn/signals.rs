//! Keeps signals away from code that points the stack at a buffer of the heap, as the library's
//! general products do for long sums (oneDNN's issue 4845): a handler would overwrite what lies
//! before the buffer.
#![allow(unsafe_code)]

/// Runs `body`, during which no handler of a signal runs on this thread, unless the thread itself is
/// at fault.
#[cfg(unix)]
pub fn held_back<T>(body: impl FnOnce() -> T) -> T {
    let _guard = platform::Guard::new();
    body()
}

/// Runs `body`: there are no signals that a thread is interrupted for.
#[cfg(not(unix))]
pub fn held_back<T>(body: impl FnOnce() -> T) -> T {
    body()
}

/// Whether an implementation of this name uses such code.
pub fn harm(implementation: &str) -> bool {
    cfg!(target_arch = "x86_64")
        && implementation.contains("gemm")
        && !implementation.contains("brg")
}

#[cfg(unix)]
mod platform {
    use std::mem::MaybeUninit;

    use libc::{
        SIG_SETMASK, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP, pthread_sigmask,
        sigdelset, sigfillset, sigset_t,
    };

    /// What a thread itself causes: if held back, these end the process without a report.
    const OWN: [i32; 7] = [SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP];

    /// Restores the calling thread's signals when dropped.
    pub struct Guard(sigset_t);

    impl Guard {
        pub fn new() -> Self {
            let (mut held, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
            // SAFETY: the first call makes a set, and the last writes the one before; none fails, as
            // their arguments are valid.
            unsafe {
                sigfillset(held.as_mut_ptr());
                OWN.iter().for_each(|&signal| {
                    sigdelset(held.as_mut_ptr(), signal);
                });
                pthread_sigmask(SIG_SETMASK, held.as_ptr(), before.as_mut_ptr());
                Guard(before.assume_init())
            }
        }
    }

    impl Drop for Guard {
        fn drop(&mut self) {
            // SAFETY: the set was the thread's own.
            unsafe { pthread_sigmask(SIG_SETMASK, &self.0, std::ptr::null_mut()) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_the_library_are_known_by_their_names() {
        let x64 = cfg!(target_arch = "x86_64");
        for name in ["gemm:jit:f32", "x64:gemm:jit", "x64:gemm_s8u8s32:jit"] {
            assert_eq!(harm(name), x64, "{name}");
        }
        for name in ["brg:avx512_core", "brgemm:avx2", "brgconv:avx512_core", "jit:avx2", "jit:uni"]
        {
            assert!(!harm(name), "{name}");
        }
    }

    #[test]
    #[cfg(unix)]
    fn signals_arrive_afterwards() {
        use std::sync::atomic::{AtomicUsize, Ordering};

        static HEARD: AtomicUsize = AtomicUsize::new(0);
        extern "C" fn hear(_: i32) {
            HEARD.fetch_add(1, Ordering::SeqCst);
        }
        let send = |signal| {
            // SAFETY: the thread is the calling one, and the signal has a handler.
            unsafe { libc::pthread_kill(libc::pthread_self(), signal) };
            HEARD.load(Ordering::SeqCst)
        };
        for signal in [libc::SIGUSR2, libc::SIGFPE] {
            // SAFETY: the handler does nothing that a handler may not do.
            unsafe { libc::signal(signal, hear as extern "C" fn(i32) as usize) };
        }
        assert_eq!(held_back(|| send(libc::SIGUSR2)), 0);
        assert_eq!(HEARD.load(Ordering::SeqCst), 1);
        assert_eq!(held_back(|| send(libc::SIGFPE)), 2);
        assert_eq!(send(libc::SIGUSR2), 3);
    }
}
