//! Orders in which to place pieces: those that are hard to place first.

use std::cmp::Reverse;

use super::Piece;

/// Several orders, the best ones first.
pub(super) fn orders(pieces: &[Piece]) -> Vec<Vec<u32>> {
    let crowds = crowds(pieces);
    let (size, duration) = (|p: usize| pieces[p].size, |p: usize| pieces[p].duration());
    let area = |p: usize| size(p) * duration(p);
    let by = |key: &dyn Fn(usize) -> (usize, usize)| {
        let mut order: Vec<u32> = (0..pieces.len() as u32).collect();
        order.sort_unstable_by_key(|&p| (Reverse(key(p as usize)), p));
        order
    };
    // Pairs of keys compare lexicographically.
    vec![
        by(&|p| (crowds[p], size(p))),
        by(&|p| (size(p), duration(p))),
        by(&|p| (crowds[p], duration(p))),
        by(&|p| (crowds[p], area(p))),
        by(&|p| (area(p), size(p))),
    ]
}

/// For each piece, the most bytes that are live at once during its lifetime.
fn crowds(pieces: &[Piece]) -> Vec<usize> {
    let mut live = vec![0isize; pieces.len() + 1];
    for piece in pieces {
        live[piece.first as usize] += piece.size as isize;
        live[piece.last as usize + 1] -= piece.size as isize;
    }
    let mut sum = 0;
    let level = |change| {
        sum += change;
        sum as usize
    };
    let most = Most::new(live.into_iter().map(level).collect());
    pieces.iter().map(|piece| most.within(piece.first as usize, piece.last as usize)).collect()
}

/// Range maximum queries by a sparse table: `rows[k][i]` is the largest of the `2^k` values from
/// `i` on.
struct Most {
    rows: Vec<Vec<usize>>,
}

impl Most {
    fn new(values: Vec<usize>) -> Self {
        let mut rows = vec![values];
        let mut step = 1;
        while let Some(row) = rows.last().filter(|row| row.len() > step) {
            rows.push((0..row.len() - step).map(|i| row[i].max(row[i + step])).collect());
            step *= 2;
        }
        Most { rows }
    }

    /// The largest value from `first` to `last`, both included.
    fn within(&self, first: usize, last: usize) -> usize {
        let k = (last - first + 1).ilog2() as usize;
        self.rows[k][first].max(self.rows[k][last + 1 - (1 << k)])
    }
}
