//! How long pieces of memory are needed.

/// The first and last nodes that need a piece of memory, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// The first node.
    pub first: u32,
    /// The last node.
    pub last: u32,
}

impl Lifetime {
    /// The lifetime of memory that no node needs.
    pub const NEVER: Lifetime = Lifetime { first: u32::MAX, last: 0 };

    /// Whether no node needs it.
    pub fn is_never(&self) -> bool {
        self.first > self.last
    }

    /// Whether the two lifetimes overlap.
    pub fn meets(&self, other: &Lifetime) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// The bytes that are live during each node.
pub fn curve(nodes: usize, pieces: impl Iterator<Item = (Lifetime, usize)>) -> Vec<usize> {
    let mut change = vec![0isize; nodes + 1];
    for (life, size) in pieces.filter(|(life, _)| !life.is_never()) {
        change[life.first as usize] += size as isize;
        change[life.last as usize + 1] -= size as isize;
    }
    let live = change.iter().scan(0, |live, change| {
        *live += change;
        Some(*live as usize)
    });
    live.take(nodes).collect()
}

/// The most bytes that are live at once, each piece rounded up to `alignment`: a lower bound on the
/// memory for this order of nodes.
pub fn bound(lifetimes: &[Lifetime], sizes: &[usize], alignment: usize) -> usize {
    let needed = lifetimes.iter().filter(|life| !life.is_never());
    let nodes = needed.map(|life| life.last as usize + 1).max().unwrap_or(0);
    let sizes = sizes.iter().map(|size| size.next_multiple_of(alignment));
    curve(nodes, lifetimes.iter().copied().zip(sizes)).into_iter().max().unwrap_or(0)
}
