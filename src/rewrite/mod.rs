//! Replaces groups of recorded operations by equivalent ones that take less time and memory. One
//! file a rule; each keeps every bit of what the recorded operations compute.

mod batch_norm;
mod matmul_update;
#[cfg(test)]
mod tests;

use crate::error::Result;
use crate::graph::draft::{Draft, Prepare};

/// Applies all rules.
///
/// # Errors
/// What `prepare` says.
pub fn rewrite(draft: &mut Draft, prepare: &mut Prepare<'_>) -> Result<()> {
    batch_norm::apply(draft, prepare)?;
    matmul_update::apply(draft, prepare)
}
