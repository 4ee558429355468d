//! The five products of the gradient.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use super::blocks::{Range, Sides};
use super::heads::{Blocks, Heads};
use crate::error::Result;
use crate::kernels::cpu::matmul::small::Small;
use crate::kernels::cpu::matmul::tile::Sum;

/// Those of a block of keys and one of queries.
pub struct Steps<W> {
    /// Keys with queries: keys x queries.
    pub scores: Small<W>,
    /// Values with gradients of results: keys x queries.
    pub slopes: Small<W>,
    /// Weights with gradients of results, added to the gradients of values.
    pub values: Small<W>,
    /// Gradients of scores with queries, added to the gradients of keys.
    pub keys: Small<W>,
    /// The transposed gradients of scores with keys, added to the gradients of queries.
    pub queries: Small<W>,
}

/// By the numbers of queries and keys.
pub struct Products<W>(FxHashMap<Range, Steps<W>>);

impl<W: Sum> Products<W> {
    /// Those of all blocks; `read` is how dy, q, k and v are read.
    ///
    /// # Errors
    /// [`crate::Error::Library`].
    pub fn new(heads: &Heads, sides: Sides, read: &[Blocks; 4]) -> Result<Self> {
        let [queries, keys] = heads.lengths;
        let mut made = FxHashMap::default();
        for (_, rows) in Sides::cut(sides.rows, queries) {
            for (_, keys) in Sides::cut(sides.keys, keys) {
                if let Entry::Vacant(place) = made.entry((rows, keys)) {
                    place.insert(Steps::new(heads, rows, keys, read)?);
                }
            }
        }
        Ok(Products(made))
    }

    /// Those of blocks of these sizes.
    pub fn of(&self, rows: usize, keys: usize) -> &Steps<W> {
        &self.0[&(rows, keys)]
    }

    /// Bytes of scratch memory that each needs.
    pub fn scratch(&self) -> usize {
        let all = self.0.values().flat_map(|steps| {
            [&steps.scores, &steps.slopes, &steps.values, &steps.keys, &steps.queries]
        });
        all.map(Small::scratch).max().unwrap_or(0).next_multiple_of(64)
    }
}

impl<W: Sum> Steps<W> {
    fn new(heads: &Heads, rows: usize, keys: usize, read: &[Blocks; 4]) -> Result<Self> {
        let ([wide, values], [dy, q, k, v]) = (heads.widths, read);
        let across = |columns: usize| [columns.max(1) as isize, 1];
        let block = across(rows);
        let turned = [block[1], block[0]];
        let sums = |size, [a, b]: [[isize; 2]; 2]| Small::new(size, [a, b, across(size[1])], true);
        Ok(Steps {
            scores: Small::new([keys, rows, wide], [k.steps, q.turned(), block], false)?,
            slopes: Small::new([keys, rows, values], [v.steps, dy.turned(), block], false)?,
            values: sums([keys, values, rows], [block, dy.steps])?,
            keys: sums([keys, wide, rows], [block, q.steps])?,
            queries: sums([rows, wide, keys], [turned, k.steps])?,
        })
    }
}
