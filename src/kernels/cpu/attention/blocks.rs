//! How queries and keys are cut into blocks: by sizes alone.

use super::heads::Heads;

/// A range of rows or keys: the first one, and how many.
pub type Range = (usize, usize);

/// The numbers of queries and of keys in a block.
#[derive(Clone, Copy)]
pub struct Sides {
    /// The most queries.
    pub rows: usize,
    /// The most keys.
    pub keys: usize,
}

/// The numbers of keys in blocks on the diagonal of causal attention are multiples of this.
const STEP: usize = 64;

impl Sides {
    /// Those of the forward pass.
    pub fn forward(heads: &Heads) -> Self {
        Sides { rows: 128, keys: 512 }.within(heads)
    }

    /// Those of the gradient.
    pub fn gradient(heads: &Heads, causal: bool) -> Self {
        let (rows, keys) = if causal { (128, 128) } else { (128, 256) };
        Sides { rows, keys }.within(heads)
    }

    fn within(self, heads: &Heads) -> Self {
        let [rows, keys] = heads.lengths;
        Sides { rows: self.rows.min(rows).max(1), keys: self.keys.min(keys).max(1) }
    }

    /// The blocks of so many.
    pub fn cut(side: usize, count: usize) -> impl Iterator<Item = Range> + Clone + use<> {
        (0..count.div_ceil(side)).map(move |i| (i * side, side.min(count - i * side)))
    }

    /// The blocks of the first keys, of which rows of causal attention see so many; the last one is
    /// cut short.
    pub fn keys_up_to(
        self,
        seen: usize,
        keys: usize,
    ) -> impl Iterator<Item = Range> + Clone + use<> {
        Sides::cut(self.keys, seen.next_multiple_of(STEP).min(keys))
    }
}
