//! Rows in blocks: kernels that process a block in turn find it in the cache.

use std::ops::Range;

use crate::device::team;
use crate::error::Result;
use crate::kernels::Width;

/// Rows cut into blocks of equal size, except for the last; each block is processed by one thread.
#[derive(Clone, Debug)]
pub struct Blocks {
    rows: usize,
    sizes: [usize; 2],
    seats: usize,
}

impl Blocks {
    /// Blocks of `block` rows.
    pub fn new(rows: usize, block: usize, width: Width) -> Self {
        let block = block.clamp(1, rows.max(1));
        let last = rows.saturating_sub(1) % block + 1;
        let seats = width.seats(rows.div_ceil(block));
        Blocks { rows, sizes: [block, last], seats }
    }

    /// The number of rows of a block, and of the last one.
    pub fn sizes(&self) -> [usize; 2] {
        self.sizes
    }

    /// The number of threads that process blocks.
    pub fn seats(&self) -> usize {
        self.seats
    }

    /// Whether there is more than one block.
    pub fn is_split(&self) -> bool {
        self.sizes[0] < self.rows
    }

    /// Picks the element of a [`Blocks::for_both`] result for these rows.
    pub fn of<'a, T>(&self, both: &'a [T; 2], rows: &Range<usize>) -> &'a T {
        &both[usize::from(rows.len() != self.sizes[0])]
    }

    /// The results of `make` for a block's number of rows, and for the last block's.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn for_both<T: Clone>(&self, make: impl Fn(usize) -> Result<T>) -> Result<[T; 2]> {
        let [block, last] = self.sizes;
        let first = make(block)?;
        Ok([first.clone(), if last == block { first } else { make(last)? }])
    }

    /// Calls `body(seat, rows)` for every block on the team's threads, which have seats below
    /// [`Blocks::seats`]; a single block runs on the calling thread, so that the body can use the
    /// whole team.
    ///
    /// # Errors
    /// The first error that a body returned.
    pub fn each(&self, body: impl Fn(usize, &Range<usize>) -> Result<()> + Sync) -> Result<()> {
        if !self.is_split() {
            return if self.rows == 0 { Ok(()) } else { body(0, &(0..self.rows)) };
        }
        let block = self.sizes[0];
        team::each(self.rows.div_ceil(block), self.seats, |n, seat| {
            body(seat, &(n * block..self.rows.min((n + 1) * block)))
        })
    }
}
