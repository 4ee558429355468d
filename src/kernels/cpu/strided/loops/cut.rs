//! The size of the boxes of a loop, and the dimension that forms their rows.

use super::boxes::Shape2;
use super::operand::Operand;
use crate::kernels::cpu::strided::walk::Dim;

/// Rows up to this length are processed several at a time.
const SHORT: usize = 128;
/// Bytes of a cache line.
const LINE: usize = 64;
/// The granularity at which long rows are split between threads.
const GRAIN: usize = 1024;

/// The inputs to the choice of the boxes.
pub struct Cut<'a, const M: usize> {
    pub operands: &'a [Operand; M],
    pub column: Dim<M>,
    pub capacity: usize,
    pub elements: usize,
    pub width: usize,
}

impl<const M: usize> Cut<'_, M> {
    /// Which of the outer dimensions forms the rows of the boxes, and the boxes' extents; `None`
    /// where a box is a piece of a single row.
    pub fn row(&self, outer: &[Dim<M>]) -> Option<(usize, Shape2)> {
        if let Some((k, r)) = self.turned(outer) {
            return Some((r, self.square(k, outer[r].extent)));
        }
        let last = outer.len().checked_sub(1)?;
        let columns = self.column.extent;
        if columns > SHORT {
            return None;
        }
        // The adjacent dimension, unless it is so short that boxes would be tiny.
        let longest = (0..=last).max_by_key(|&d| outer[d].extent)?;
        let r = if outer[last].extent * columns >= SHORT { last } else { longest };
        let rows = outer[r].extent.min(self.capacity / columns.max(1));
        Some((r, Shape2 { rows, columns }))
    }

    /// An input whose innermost dimension is not the output's, and that dimension.
    fn turned(&self, outer: &[Dim<M>]) -> Option<(usize, usize)> {
        (0..M - 1).find_map(|k| {
            let inner = self.column.strides[k].unsigned_abs();
            let step = |d: usize| outer[d].strides[k].unsigned_abs();
            let nearest = (0..outer.len()).filter(|&d| step(d) != 0).min_by_key(|&d| step(d))?;
            (inner != 0 && step(nearest) < inner).then_some((k, nearest))
        })
    }

    /// A box in which input `k` is read in whole cache lines, and the output written in longer
    /// runs.
    fn square(&self, k: usize, rows: usize) -> Shape2 {
        let rows_of_a_line = rows.min(LINE / self.operands[k].size()).min(self.capacity);
        let columns = self.column.extent.min(self.capacity / rows_of_a_line.max(1));
        Shape2 { rows: rows.min(self.capacity / columns.max(1)), columns }
    }

    /// The extents of a box that is a piece of a single row.
    pub fn long_row(&self) -> Shape2 {
        let straight = (0..M).all(|k| {
            let unit = self.operands[k].size() as isize;
            !self.operands[k].is_converted() && self.column.strides[k] == unit
        });
        let columns = self.column.extent;
        let piece = if straight {
            self.elements.div_ceil(self.width.max(1)).next_multiple_of(GRAIN)
        } else {
            self.capacity
        };
        Shape2 { rows: 1, columns: columns.min(piece) }
    }
}
