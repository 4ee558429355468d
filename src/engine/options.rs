//! How a graph is made of a recording.

/// What may be done with the recorded operations.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Whether operations may be replaced and computed again; else they stay as recorded.
    pub rewrite: bool,
    /// Whether only what keeps every bit of the results may be done.
    pub exact: bool,
}

impl Options {
    /// Nothing is replaced, moved or computed again.
    pub const AS_RECORDED: Options = Options { rewrite: false, exact: true };
}

impl Default for Options {
    fn default() -> Self {
        Options { rewrite: true, exact: true }
    }
}
