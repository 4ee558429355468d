//! Cutting tensors into boxes: two-dimensional pieces of a few hundred elements.

use std::ops::Range;

use smallvec::SmallVec;

use super::cut::Cut;
use super::operand::Operand;
use crate::kernels::cpu::strided::walk::{Dim, merged, sorted};

/// The extents of a box.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Shape2 {
    pub rows: usize,
    pub columns: usize,
}

impl Shape2 {
    /// The number of elements.
    #[inline(always)]
    pub fn len(self) -> usize {
        self.rows * self.columns
    }

    /// Cuts a box of one row into pieces of at most `capacity`; others fit already.
    pub fn pieces(self, capacity: usize) -> impl Iterator<Item = (usize, Shape2)> {
        let step = if self.rows == 1 { capacity } else { self.columns.max(1) };
        (0..self.columns)
            .step_by(step)
            .map(move |c| (c, Shape2 { columns: step.min(self.columns - c), ..self }))
    }
}

/// See the module's documentation. Operands are the inputs, then the output; strides are in bytes.
pub struct Boxes<const M: usize> {
    /// The remaining dimensions, outermost first, followed by those along columns and rows.
    axes: SmallVec<[Dim<M>; 4]>,
    pub row: Dim<M>,
    pub column: Dim<M>,
    full: Shape2,
    origin: [isize; M],
    count: usize,
    capacity: usize,
    /// Whether each operand's boxes are contiguous in memory and of the type of the computation.
    pub direct: [bool; M],
}

impl<const M: usize> Boxes<M> {
    /// Boxes such that each operand's fits `buffer` bytes, for `width` threads.
    pub fn new(operands: &[Operand; M], width: usize, buffer: usize) -> Self {
        let (mut dims, origin) = dims(operands);
        let elements = dims.iter().map(|d| d.extent).product();
        let capacity = buffer / operands.iter().map(Operand::widest).max().unwrap_or(1);
        let column = dims.pop().unwrap_or(Dim { extent: 1, strides: units(operands) });
        let cut = Cut { operands, column, capacity, elements, width };
        let (row, full) = match cut.row(&dims) {
            Some((r, shape)) => (dims.remove(r), shape),
            None => (Dim { extent: 1, strides: [0; M] }, cut.long_row()),
        };
        let mut boxes =
            Boxes { axes: dims, row, column, full, origin, count: 0, capacity, direct: [true; M] };
        boxes.axes.extend([blocks(column, full.columns), blocks(row, full.rows)]);
        boxes.count = boxes.axes.iter().map(|d| d.extent).product();
        boxes.direct = std::array::from_fn(|k| boxes.is_direct(k, &operands[k]));
        boxes
    }

    /// The number of boxes.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The number of elements that fit a buffer.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Whether no operand needs a buffer.
    pub fn is_straight(&self) -> bool {
        self.direct.iter().all(|&d| d)
    }

    /// Operand `k`'s strides from row to row and from column to column.
    pub fn strides(&self, k: usize) -> [isize; 2] {
        [self.row.strides[k], self.column.strides[k]]
    }

    fn is_direct(&self, k: usize, operand: &Operand) -> bool {
        let size = operand.size() as isize;
        let [row, column] = self.strides(k);
        let rows_follow = self.full.rows <= 1
            || (self.full.columns == self.column.extent
                && row == self.full.columns as isize * size);
        !operand.is_converted() && column == size && rows_follow
    }

    /// Calls `body(offsets in bytes, extents)` for boxes `range`.
    #[inline(always)]
    pub fn each(&self, range: Range<usize>, mut body: impl FnMut(&[isize; M], Shape2)) {
        if range.is_empty() {
            return;
        }
        let (mut index, mut offsets) = self.position(range.start);
        for _ in range {
            body(&offsets, self.shape(&index));
            self.advance(&mut index, &mut offsets);
        }
    }

    fn position(&self, at: usize) -> (SmallVec<[usize; 6]>, [isize; M]) {
        let mut index: SmallVec<[usize; 6]> = smallvec::smallvec![0; self.axes.len()];
        let (mut left, mut offsets) = (at, self.origin);
        if at > 0 {
            for (i, axis) in index.iter_mut().zip(&self.axes).rev() {
                (*i, left) = (left % axis.extent, left / axis.extent);
                (0..M).for_each(|k| offsets[k] += *i as isize * axis.strides[k]);
            }
        }
        (index, offsets)
    }

    #[inline(always)]
    fn shape(&self, index: &[usize]) -> Shape2 {
        let (c, r) = (index[index.len() - 2], index[index.len() - 1]);
        Shape2 {
            rows: self.full.rows.min(self.row.extent - r * self.full.rows),
            columns: self.full.columns.min(self.column.extent - c * self.full.columns),
        }
    }

    #[inline(always)]
    fn advance(&self, index: &mut [usize], offsets: &mut [isize; M]) {
        for (i, axis) in index.iter_mut().zip(&self.axes).rev() {
            *i += 1;
            if *i < axis.extent {
                (0..M).for_each(|k| offsets[k] += axis.strides[k]);
                return;
            }
            *i = 0;
            (0..M).for_each(|k| offsets[k] -= (axis.extent as isize - 1) * axis.strides[k]);
        }
    }
}

fn blocks<const M: usize>(dim: Dim<M>, size: usize) -> Dim<M> {
    let extent = dim.extent.div_ceil(size.max(1));
    Dim { extent, strides: dim.strides.map(|s| s * size as isize) }
}

fn units<const M: usize>(operands: &[Operand; M]) -> [isize; M] {
    std::array::from_fn(|k| {
        if operands[k].constant().is_some() { 0 } else { operands[k].size() as isize }
    })
}

/// The dimensions in the output's memory order, outermost first, without extents of 1, with
/// contiguous ones merged and those with negative output strides reversed; and the resulting offset
/// of the first element.
fn dims<const M: usize>(operands: &[Operand; M]) -> (SmallVec<[Dim<M>; 4]>, [isize; M]) {
    let shape = operands[M - 1].shape();
    let dim = |d: usize| Dim {
        extent: shape[d],
        strides: std::array::from_fn(|k| operands[k].step(shape.len() - d)),
    };
    let all: SmallVec<[Dim<M>; 4]> = (0..shape.len()).map(dim).filter(|d| d.extent != 1).collect();
    let mut all = sorted(&all, M - 1);
    let mut origin = [0; M];
    for dim in all.iter_mut().filter(|d| d.strides[M - 1] < 0 && d.extent > 0) {
        (0..M).for_each(|k| origin[k] += (dim.extent as isize - 1) * dim.strides[k]);
        dim.strides = dim.strides.map(|s| -s);
    }
    (merged(all), origin)
}
