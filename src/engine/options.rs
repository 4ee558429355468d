//! Options for making a graph from a recording.

use serde::{Deserialize, Serialize};

use crate::graph::Parallel;
use crate::graph::recompute::greedy;
use crate::rewrite;

/// A memory budget for the arena of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Budget {
    /// An absolute number of bytes.
    Bytes(usize),
    /// A fraction of what the same step takes without recomputation.
    Share(f64),
}

/// Which transformations of the recorded operations are allowed.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Whether operations may be rewritten and recomputed; otherwise they stay as recorded.
    pub rewrite: bool,
    /// Whether results that are cheap for their size may be recomputed instead of kept.
    pub recompute: bool,
    /// Whether only transformations that keep results bitwise equal are allowed.
    pub exact: bool,
    /// Whether results that are the same in every run may be cached.
    pub keep: bool,
    /// Whether every result is checked, and a run stops at the first NaN or infinity. Then the
    /// operations stay as recorded, so that the error names an operation of the program.
    pub check_finite: bool,
    /// Whether several threads may run operations concurrently.
    pub parallel: Option<Parallel>,
    /// The memory budget of the arena; what does not fit is recomputed. Applies only if `rewrite`
    /// is set.
    pub budget: Option<Budget>,
    /// The thresholds from which transformations pay off.
    pub limits: Limits,
}

/// The thresholds from which transformations of recorded operations pay off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Thresholds of rewriting.
    pub rewriting: rewrite::Limits,
    /// Thresholds of recomputation.
    pub recomputing: greedy::Limits,
}

impl Limits {
    /// The default thresholds.
    pub const DEFAULT: Limits =
        Limits { rewriting: rewrite::Limits::DEFAULT, recomputing: greedy::Limits::DEFAULT };
    /// No thresholds: transform wherever possible.
    pub const NONE: Limits =
        Limits { rewriting: rewrite::Limits::NONE, recomputing: greedy::Limits::NONE };
}

impl Options {
    /// No rewriting, reordering or recomputation.
    #[cfg(test)]
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
