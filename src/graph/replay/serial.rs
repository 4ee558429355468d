//! Serial replay: in recorded order, on the calling thread.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Stopped;
use super::binding::Binding;
use crate::device::ending;
use crate::error::Error;

/// Runs nodes, up to the first one that fails.
///
/// # Safety
/// As [`super::Bound::run_from`].
pub(super) unsafe fn run(binding: &Binding, nodes: Range<usize>) -> Result<(), Stopped> {
    let mut node = nodes.start;
    let run = || {
        for step in &binding.steps()[nodes] {
            ending::check()?;
            // SAFETY: by the caller's promise.
            unsafe { binding.run(step) }?;
            node += 1;
        }
        Ok(())
    };
    let done =
        catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| Err(Error::panic("", &*panic)));
    done.map_err(|error| binding.stopped(node, error))
}
