//! The one thread team of the process.

use std::ops::Range;

use crate::error::Result;

/// How many threads the process may use: processors allowed by affinity and control group, and
/// at most `OMP_NUM_THREADS`.
pub fn allowed_threads() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get())
}

/// Runs `body(part)` for every part in `0..parts`, at most one thread a part.
///
/// # Errors
/// [`crate::Error::Panic`] where a body panicked.
pub fn parallel(parts: usize, body: &(dyn Fn(usize) + Sync)) -> Result<()> {
    (0..parts).for_each(body);
    Ok(())
}

/// Part `part` of `0..len` cut into `parts` nearly equal ranges whose bounds are multiples of
/// `grain` (but for the last).
pub fn share(len: usize, grain: usize, parts: usize, part: usize) -> Range<usize> {
    let grains = len.div_ceil(grain);
    let bound = |p: usize| (grains * p / parts * grain).min(len);
    bound(part)..bound(part + 1)
}
