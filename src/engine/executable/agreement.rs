//! Telling the groups of processes that a recorded step begins, so that ranks with other steps are
//! noticed.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use rustc_hash::FxHasher;

use crate::comm::{self, Signature};
use crate::engine::recording::Recording;
use crate::error::Result;
use crate::ops::Kind;

/// The signature of a recording, for each group whose ranks all take part in its exchanges.
pub struct Agreement(Vec<(u64, Arc<Signature>)>);

impl Agreement {
    /// That of a recording; none where ranks send to each other, as then they do different things.
    pub fn of(recording: &Recording) -> Self {
        let ops = recording.queue.ops();
        let mut groups = Vec::new();
        for op in ops {
            let Kind::ExchangeStart(start) = &op.call.kind else { continue };
            if start.exchange.is_pair() {
                return Agreement(Vec::new());
            }
            if !groups.contains(&start.group) {
                groups.push(start.group);
            }
        }
        if groups.is_empty() {
            return Agreement(Vec::new());
        }
        let mut shapes = FxHasher::default();
        recording.arguments.iter().for_each(|place| place.meta.hash(&mut shapes));
        let named = ops.iter().map(|op| (name(&op.call.kind), recording.origin(op).line.clone()));
        let signature = Arc::new(Signature::new(shapes.finish(), named.collect()));
        Agreement(groups.into_iter().map(|group| (group, signature.clone())).collect())
    }

    /// Tells the groups that the step begins.
    ///
    /// # Errors
    /// [`crate::Error::Exchange`] if one is closed.
    pub fn begin(&self) -> Result<()> {
        self.0.iter().try_for_each(|(group, step)| comm::group(*group).map(|one| one.enter(step)))
    }
}

/// The name of an operation, or of what it exchanges.
fn name(kind: &Kind) -> &'static str {
    match kind {
        Kind::ExchangeStart(start) => start.exchange.name(),
        kind => kind.family().name(),
    }
}
