//! What holds memory when no more can be had.

use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

/// So many tensors an error about memory names.
pub const MOST_NAMED: usize = 10;

/// A tensor that holds memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveTensor {
    /// What it is: the operation that makes it, its dtype and shape; or what its memory is held
    /// for.
    pub name: String,
    /// Bytes that it takes.
    pub bytes: usize,
    /// Where the user's program made it, if that is known.
    pub line: Option<Arc<str>>,
}

/// How well memory was used when more was refused.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Usage {
    /// Bytes that what was alive could not do without, wherever it lay.
    pub bound: usize,
    /// The share of the memory taken that is beyond that, from 0 to 1.
    pub fragmentation: f64,
    /// The largest tensors that were alive, the largest first; at most [`MOST_NAMED`].
    pub largest: Vec<LiveTensor>,
}

impl Usage {
    /// Of `taken` bytes that hold what could not do with less than `bound`; of the tensors the
    /// largest are kept.
    pub fn new(bound: usize, taken: usize, tensors: Vec<LiveTensor>) -> Self {
        let fragmentation = taken.saturating_sub(bound) as f64 / taken.max(1) as f64;
        Usage { bound, fragmentation, largest: largest(tensors) }
    }
}

/// The largest tensors that an error names, the largest first.
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

/// The largest of these tensors, a line each, under a heading; nothing where there are none.
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
