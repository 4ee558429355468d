//! Fork detection: threads and locks do not survive `fork`.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::heap;
use crate::error::{Error, Result};

static USED: AtomicBool = AtomicBool::new(false);
static ORPHANED: AtomicBool = AtomicBool::new(false);

/// Marks the engine as used. Fails in a child forked from a process that used it, and if there is
/// no memory for small allocations.
///
/// # Errors
/// [`Error::Device`] in such a child, whose thread team and locks are gone; the errors of
/// [`heap::check`].
pub fn check(op: &'static str) -> Result<()> {
    if !USED.load(Relaxed) {
        watch();
        USED.store(true, Relaxed);
    }
    if is_orphan() {
        return Err(Error::device(
            op,
            "this process was forked from one that already ran operations, so its \
                      threads are gone; start workers with multiprocessing's \"spawn\" method",
        ));
    }
    heap::check().map_err(|error| error.in_op(op))
}

/// Whether this is a child forked from a process that used the engine. A thread of the parent may
/// have held any lock at the fork, so nothing here may wait for one.
pub fn is_orphan() -> bool {
    ORPHANED.load(Relaxed)
}

#[cfg(unix)]
extern "C" fn in_child() {
    ORPHANED.store(USED.load(Relaxed), Relaxed);
}

#[cfg(unix)]
fn watch() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    // SAFETY: the handler only touches atomics, which is allowed between fork and exec.
    #[allow(unsafe_code)]
    ONCE.call_once(|| unsafe {
        libc::pthread_atfork(None, None, Some(in_child));
    });
}

/// There is no `fork` on Windows.
#[cfg(not(unix))]
fn watch() {}
