//! How a graph is made of a recording.

use crate::graph::Parallel;

/// A bound for the arena of a graph.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Budget {
    /// So many bytes.
    Bytes(usize),
    /// This part of what the same graph takes without a bound.
    Share(f64),
}

impl Budget {
    /// The bound in bytes, of a graph that takes so many without one.
    pub fn bytes(self, unbounded: usize) -> usize {
        match self {
            Budget::Bytes(bytes) => bytes,
            Budget::Share(share) => (share * unbounded as f64) as usize,
        }
    }
}

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
    /// What the arena has to keep to; what does not fit is computed again. It bounds only what is
    /// rewritten, and then one thread runs it.
    pub budget: Option<Budget>,
}

impl Options {
    /// Nothing is replaced, moved or computed again.
    pub const AS_RECORDED: Options =
        Options { rewrite: false, exact: true, check_finite: false, parallel: None, budget: None };
}

impl Default for Options {
    fn default() -> Self {
        Options { rewrite: true, exact: true, check_finite: false, parallel: None, budget: None }
    }
}
