//! Tasks of different lengths, each done by whichever thread is free.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use crate::device::team;
use crate::error::Result;

/// Calls `body(part, task)` for every task, each on one thread, in `parts` parts of which each does
/// one task at a time.
///
/// # Errors
/// Those of the team; the first error of a body.
pub fn each(
    parts: usize,
    tasks: usize,
    body: impl Fn(usize, usize) -> Result<()> + Sync,
) -> Result<()> {
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(None));
    let take = || Some(next.fetch_add(1, Relaxed)).filter(|&task| task < tasks);
    team::parallel(parts, &|part| {
        while let Some(task) = take() {
            if let Err(error) = body(part, task) {
                failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                return;
            }
        }
    })?;
    failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}
