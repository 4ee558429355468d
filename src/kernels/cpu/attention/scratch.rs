//! The scratch memory of the gradient.
#![allow(unsafe_code)]

use super::blocks::Sides;
use super::heads::{Blocks, Heads};
use crate::kernels::cpu::space;

/// The lengths of a seat's arrays.
pub struct Layout {
    lengths: [usize; 14],
    /// The length of an array of gradients of queries: of the heads that share keys.
    pub sums: usize,
}

/// A seat's arrays.
pub struct Arrays<'a, W> {
    /// Copies of blocks of q and dy.
    pub tiles_of_queries: [&'a mut [W]; 2],
    /// Copies of blocks of k and v.
    pub tiles_of_keys: [&'a mut [W]; 2],
    /// Products of keys and queries, then weights.
    pub scores: &'a mut [W],
    /// Products of values and gradients of results, then gradients of scores.
    pub slopes: &'a mut [W],
    /// What weights are multiplied by, if some are dropped.
    pub factors: &'a mut [W],
    /// What is added to a row of scores.
    pub bias: &'a mut [W],
    /// The logarithms of the sums of a block of queries.
    pub logs: &'a mut [W],
    /// For each query of the heads that share keys, the product of its result and that one's
    /// gradient.
    pub own: &'a mut [W],
    /// A row of y and one of dy.
    pub rows: [&'a mut [W]; 2],
    /// The gradients of a block of keys.
    pub keys: &'a mut [W],
    /// The gradients of a block of values.
    pub values: &'a mut [W],
    /// The gradients of the queries of the heads that share keys.
    pub sums: &'a mut [W],
    /// The library's scratch memory.
    pub library: *mut u8,
}

impl Layout {
    /// The arrays for blocks of these sizes; `read` are those of dy, q, k and v.
    pub fn new(heads: &Heads, sides: Sides, read: &[Blocks; 4], drops: bool) -> Self {
        let (Sides { rows, keys }, [dy, q, k, v]) = (sides, read);
        let ([wide, values], queries) = (heads.widths, heads.group() * heads.lengths[0]);
        let block = rows * keys;
        let factors = if drops { block } else { 0 };
        let tiles = [q.room(rows), dy.room(rows), k.room(keys), v.room(keys)];
        let [a, b, c, d] = tiles;
        let of_rows = [rows, rows, queries, values, values];
        let [e, f, g, h, i] = of_rows;
        let results = [keys * wide, keys * values];
        let lengths = [a, b, c, d, block, block, factors, e, f, g, h, i, results[0], results[1]];
        Layout { lengths, sums: queries * wide }
    }

    /// Bytes of a seat's arrays, without the gradients of queries.
    pub fn bytes<W>(&self) -> usize {
        space::bytes::<W>(self.lengths)
    }

    /// Bytes of the gradients of queries.
    pub fn bytes_of_sums<W>(&self) -> usize {
        space::bytes::<W>([self.sums])
    }

    /// The arrays at an address; the library's memory follows them.
    ///
    /// # Safety
    /// There are as many bytes, aligned to 64, at each address, which nothing else uses.
    pub unsafe fn arrays<'a, W>(&self, at: *mut u8, sums: *mut W) -> Arrays<'a, W> {
        // SAFETY: by the caller's promise.
        let (arrays, sums) = unsafe {
            (space::arrays(at, self.lengths), std::slice::from_raw_parts_mut(sums, self.sums))
        };
        let [q, dy, k, v, scores, slopes, factors, bias, logs, own, y, row, keys, values] = arrays;
        Arrays {
            tiles_of_queries: [q, dy],
            tiles_of_keys: [k, v],
            scores,
            slopes,
            factors,
            bias,
            logs,
            own,
            rows: [y, row],
            keys,
            values,
            sums,
            library: at.wrapping_add(self.bytes::<W>()),
        }
    }
}
