//! How a graph is made of a recording.

use crate::graph::{Parallel, remat};
use crate::rewrite;

/// A bound for the arena of a graph.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Budget {
    /// So many bytes.
    Bytes(usize),
    /// This part of what the same step takes if nothing is computed again.
    Share(f64),
}

/// What may be done with the recorded operations.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Whether operations may be replaced and computed again; else they stay as recorded.
    pub rewrite: bool,
    /// Whether what is cheap for its size may be computed again instead of kept.
    pub recompute: bool,
    /// Whether only what keeps every bit of the results may be done.
    pub exact: bool,
    /// Whether memory may be kept from run to run for what is the same in all of them.
    pub keep: bool,
    /// Whether every result is looked at, and a run stops at the first NaN or infinity. Then the
    /// operations stay as recorded, so that the one that is named is one of the program.
    pub check_finite: bool,
    /// Whether several threads may run operations at the same time.
    pub parallel: Option<Parallel>,
    /// What the arena has to keep to; what does not fit is computed again. It bounds only what is
    /// rewritten.
    pub budget: Option<Budget>,
    /// From where on rewriting and computing again are worth it.
    pub limits: Limits,
}

/// From where on what may be done with recorded operations is worth it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Of rewriting.
    pub rewriting: rewrite::Limits,
    /// Of computing again what could be kept.
    pub recomputing: remat::Limits,
}

impl Limits {
    /// What a graph is worth without being asked.
    pub const DEFAULT: Limits =
        Limits { rewriting: rewrite::Limits::DEFAULT, recomputing: remat::Limits::DEFAULT };
    /// Wherever something can be done.
    pub const NONE: Limits =
        Limits { rewriting: rewrite::Limits::NONE, recomputing: remat::Limits::NONE };
}

impl Options {
    /// Nothing is replaced, moved or computed again.
    pub const AS_RECORDED: Options = Options { rewrite: false, ..Options::DEFAULT };

    const DEFAULT: Options = Options {
        rewrite: true,
        recompute: true,
        exact: true,
        keep: true,
        check_finite: false,
        parallel: None,
        budget: None,
        limits: Limits::DEFAULT,
    };
}

impl Default for Options {
    fn default() -> Self {
        Options::DEFAULT
    }
}
