//! Which blocks a product is made in: the metas alone decide.

use crate::ops::cpu::matrices::Matrices;

/// The depth above which a block's factors leave the cache.
const DEEPEST: usize = 512;

/// How large blocks are.
struct Sizes {
    /// Bytes of the product below which it stays whole.
    smallest: usize,
    /// Bytes of a block, more or less.
    block: usize,
    /// Rows below which packing the right factor for each block would show.
    fewest: usize,
}

/// With a transposed left factor, as gradients of weights have it, libraries are fast on a few rows
/// of it that lie side by side: two blocks fit into the second cache beside what they are made of.
const TRANSPOSED: Sizes = Sizes { smallest: 192 << 10, block: 32 << 10, fewest: 32 };
/// Other products stay in the cache as a whole until they are larger.
const PLAIN: Sizes = Sizes { smallest: (1 << 20) + 1, block: 512 << 10, fewest: 256 };
/// A block that is larger than this leaves the cache.
const LARGEST_BLOCK: usize = 1 << 20;
/// Blocks have a multiple of so many rows, but for the last.
const GRAIN: usize = 8;

/// How many rows a block has, of those of all matrices one below another.
pub fn block(all: &Matrices) -> usize {
    if all.batch.is_empty() { of_one(all) } else { of_batch(all) }
}

/// Of one product: some of its rows.
fn of_one(all: &Matrices) -> usize {
    let ([rows, _, depth], [down, across]) = (all.size, all.steps[0]);
    let (bytes, is_transposed) = (rows * all.row_bytes(), down == 1 && across > 1);
    let sizes = if is_transposed { TRANSPOSED } else { PLAIN };
    let is_known = is_transposed || across == 1;
    if !is_known || depth > DEEPEST || bytes < sizes.smallest {
        return rows;
    }
    let wanted = (sizes.block * rows / bytes).max(sizes.fewest);
    // An even number of blocks, so that two threads have equal parts.
    let count = rows.div_ceil(2 * wanted) * 2;
    let block = rows.div_ceil(count).next_multiple_of(GRAIN).min(rows);
    if block * all.row_bytes() > LARGEST_BLOCK { rows } else { block }
}

/// Of a batch: a few of its matrices. Where its factors are larger than the result, to have that in
/// the cache brings less than blocks cost.
fn of_batch(all: &Matrices) -> usize {
    let ([m, n, k], matrix) = (all.size, all.size[0] * all.row_bytes());
    if matrix * all.count() < PLAIN.smallest || m * n < (m + n) * k {
        return all.rows();
    }
    // As with rows, an even number of blocks.
    let is_even = |count: usize| (all.count() / count).is_multiple_of(2);
    let fits = |&count: &usize| is_even(count) && is_as_dense(all, count * m);
    let found = nested(all, LARGEST_BLOCK / matrix).filter(fits);
    let best = found.min_by_key(|&count| (count * matrix).abs_diff(PLAIN.block));
    best.map_or(all.rows(), |count| count * m)
}

/// Whether factors without gaps, on which libraries are faster, have none in the first rows either.
fn is_as_dense(all: &Matrices, rows: usize) -> bool {
    let (whole, part) = (all.metas(), all.first(rows).metas());
    (0..2).all(|i| part[i].is_dense() || !whole[i].is_dense())
}

/// The numbers up to `most` of matrices that are all of the inner axes and a part of the next
/// one's, and that the batch is a multiple of.
fn nested(all: &Matrices, most: usize) -> impl Iterator<Item = usize> {
    let mut inner = 1;
    let counts = all.batch.iter().rev().flat_map(move |axis| {
        let (below, extent) = (inner, axis.extent);
        inner *= extent;
        (1..=extent).filter(move |&n| extent.is_multiple_of(n)).map(move |n| below * n)
    });
    counts.take_while(move |&count| count <= most)
}
