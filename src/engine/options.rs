//! How a graph is made of a recording.

use crate::graph::Parallel;

/// What may be done with the recorded operations.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Whether operations may be replaced and computed again; else they stay as recorded.
    pub rewrite: bool,
    /// Whether only what keeps every bit of the results may be done.
    pub exact: bool,
    /// Whether every result is looked at, and a run stops at the first NaN or infinity. Then the
    /// operations stay as recorded, so that the one that is named is one of the program.
    pub check_finite: bool,
    /// Whether several threads may run operations at the same time.
    pub parallel: Option<Parallel>,
}

impl Options {
    /// Nothing is replaced, moved or computed again.
    pub const AS_RECORDED: Options =
        Options { rewrite: false, exact: true, check_finite: false, parallel: None };
}

impl Default for Options {
    fn default() -> Self {
        Options { rewrite: true, exact: true, check_finite: false, parallel: None }
    }
}
