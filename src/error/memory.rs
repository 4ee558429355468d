//! What was holding memory when an allocation failed.

use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

/// The most tensors that an out-of-memory error lists.
pub const MOST_NAMED: usize = 10;

/// A tensor that holds memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveTensor {
    /// A description: the operation that produces it, its dtype and shape; or the account that its
    /// memory is charged to.
    pub name: String,
    /// Its size in bytes.
    pub bytes: usize,
    /// The line of the user's program that created it, if known.
    pub line: Option<Arc<str>>,
}

/// How well memory was used when an allocation failed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Usage {
    /// A lower bound in bytes on the memory needed for everything that was live, however it is
    /// placed.
    pub bound: usize,
    /// The fraction of the memory in use beyond that bound, from 0 to 1.
    pub fragmentation: f64,
    /// The largest live tensors, largest first; at most [`MOST_NAMED`].
    pub largest: Vec<LiveTensor>,
}

impl Usage {
    /// The usage of `taken` bytes whose contents need at least `bound`; only the largest tensors
    /// are kept.
    pub fn new(bound: usize, taken: usize, tensors: Vec<LiveTensor>) -> Self {
        let fragmentation = taken.saturating_sub(bound) as f64 / taken.max(1) as f64;
        Usage { bound, fragmentation, largest: largest(tensors) }
    }
}

/// The tensors that an error lists, largest first.
pub fn largest(mut tensors: Vec<LiveTensor>) -> Vec<LiveTensor> {
    tensors.sort_by_key(|tensor| std::cmp::Reverse(tensor.bytes));
    tensors.truncate(MOST_NAMED);
    tensors
}

impl Display for LiveTensor {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{:>15} bytes  {}", self.bytes, self.name)?;
        self.line.as_ref().map_or(Ok(()), |line| write!(f, ", made at {line}"))
    }
}

impl Display for Usage {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let percent = 100.0 * self.fragmentation;
        write!(f, "bound {} bytes, fragmentation {percent:.2}%", self.bound)?;
        write!(f, "{}", listed(&self.largest))
    }
}

/// The first of these tensors, one per line, under a heading; empty if there are none.
pub fn listed(tensors: &[LiveTensor]) -> String {
    let named = &tensors[..tensors.len().min(MOST_NAMED)];
    let heading = if named.is_empty() { "" } else { "\nthe largest live tensors:" };
    named.iter().fold(heading.into(), |text, tensor| format!("{text}\n{tensor}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(bytes: usize) -> LiveTensor {
        LiveTensor { name: "relu float32 (2,)".into(), bytes, line: Some("a.py:3".into()) }
    }

    #[test]
    fn the_ten_largest_are_named_in_order() {
        let usage = Usage::new(75, 100, (0..20).map(tensor).collect());
        assert_eq!(usage.fragmentation, 0.25);
        let bytes: Vec<usize> = usage.largest.iter().map(|tensor| tensor.bytes).collect();
        assert_eq!(bytes, Vec::from_iter((10..20).rev()));
        let text = usage.to_string();
        assert!(
            text.starts_with("bound 75 bytes, fragmentation 25.00%\nthe largest live tensors:")
        );
        assert!(text.contains("             19 bytes  relu float32 (2,), made at a.py:3\n"));
        assert_eq!(listed(&[]), "");
    }
}
