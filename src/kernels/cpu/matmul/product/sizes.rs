//! The blocks a product is computed in, which depend on the metas alone.

use crate::kernels::cpu::matmul::matrices::Matrices;

/// The depth above which a block's factors do not stay in the cache.
const DEEPEST: usize = 512;

/// Block sizes for a kind of product.
struct Sizes {
    /// The minimum bytes of a product that is split.
    smallest: usize,
    /// Approximate bytes of a block.
    block: usize,
    /// The minimum number of rows such that packing the right factor per block is not noticeable.
    fewest: usize,
}

/// With a transposed left factor, as in gradients of weights, libraries are fast on a few
/// contiguous rows of it: two blocks fit into the L2 cache together with their factors.
const TRANSPOSED: Sizes = Sizes { smallest: 192 << 10, block: 32 << 10, fewest: 32 };
/// Other products stay in the cache as a whole up to a larger size.
const PLAIN: Sizes = Sizes { smallest: (1 << 20) + 1, block: 512 << 10, fewest: 256 };
/// A block with more bytes than this does not stay in the cache.
const LARGEST_BLOCK: usize = 1 << 20;
/// The number of rows of a block, except for the last, is a multiple of this.
const GRAIN: usize = 8;

/// The number of rows of a block, out of those of all matrices, stacked.
pub fn block(all: &Matrices) -> usize {
    if all.batch.is_empty() { of_one(all) } else { of_batch(all) }
}

/// For a single product: some of its rows.
fn of_one(all: &Matrices) -> usize {
    let ([rows, _, depth], [down, across]) = (all.size, all.steps[0]);
    let (bytes, is_transposed) = (rows * all.row_bytes(), down == 1 && across > 1);
    let sizes = if is_transposed { TRANSPOSED } else { PLAIN };
    let is_known = is_transposed || across == 1;
    if !is_known || depth > DEEPEST || bytes < sizes.smallest {
        return rows;
    }
    let wanted = (sizes.block / all.row_bytes()).max(sizes.fewest);
    // An even number of blocks, so that two threads get equal parts.
    let count = rows.div_ceil(2 * wanted) * 2;
    let block = rows.div_ceil(count).next_multiple_of(GRAIN).min(rows);
    if block * all.row_bytes() > LARGEST_BLOCK { rows } else { block }
}

/// For a batch: a few of its matrices. Where the factors are larger than the result, having the
/// result in the cache gains less than blocks cost.
fn of_batch(all: &Matrices) -> usize {
    let ([m, n, k], matrix) = (all.size, all.size[0] * all.row_bytes());
    if matrix * all.count() < PLAIN.smallest || m * n < (m + n) * k {
        return all.rows();
    }
    // An even number of blocks, as with rows.
    let is_even = |count: usize| (all.count() / count).is_multiple_of(2);
    let fits = |&count: &usize| is_even(count) && is_as_dense(all, count * m);
    let found = nested(all, LARGEST_BLOCK / matrix).filter(fits);
    let best = found.min_by_key(|&count| (count * matrix).abs_diff(PLAIN.block));
    best.map_or(all.rows(), |count| count * m)
}

/// Whether dense factors, on which libraries are faster, are dense in the first rows, too.
fn is_as_dense(all: &Matrices, rows: usize) -> bool {
    let (whole, part) = (all.metas(), all.first(rows).metas());
    (0..2).all(|i| part[i].is_dense() || !whole[i].is_dense())
}

/// The numbers of matrices, up to `most`, that divide the batch and comprise all of the inner axes
/// and a part of the next axis.
fn nested(all: &Matrices, most: usize) -> impl Iterator<Item = usize> {
    let mut inner = 1;
    let counts = all.batch.iter().rev().flat_map(move |axis| {
        let (below, extent) = (inner, axis.extent);
        inner *= extent;
        (1..=extent).filter(move |&n| extent.is_multiple_of(n)).map(move |n| below * n)
    });
    counts.take_while(move |&count| count <= most)
}
