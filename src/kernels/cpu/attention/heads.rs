//! Where the matrices of each head lie.
#![allow(unsafe_code)]

use crate::kernels::cpu::matmul::tile::{Factor, Matrix, gather_matrix};
use crate::ops::Meta;
use crate::ops::attention::Sizes;
use crate::shape::Shape;

/// Sizes, and how heads are numbered: those of queries, over all batches, and those of keys.
#[derive(Clone, Copy)]
pub struct Heads {
    /// The number of batches.
    pub batches: usize,
    /// The heads of queries in a batch, and those of keys.
    pub each: [usize; 2],
    /// The numbers of queries and keys.
    pub lengths: [usize; 2],
    /// The widths of keys and values.
    pub widths: [usize; 2],
}

impl Heads {
    /// Those of an attention of these sizes.
    pub fn new(sizes: &Sizes) -> Self {
        let Sizes { heads, lengths, widths, .. } = *sizes;
        Heads { batches: sizes.batch.numel(), each: heads, lengths, widths }
    }

    /// The number of heads of queries, in all batches.
    pub fn count(&self) -> usize {
        self.batches * self.each[0]
    }

    /// The number of heads of keys, in all batches.
    pub fn shared(&self) -> usize {
        self.batches * self.each[1]
    }

    /// The number of heads of queries for each head of keys.
    pub fn group(&self) -> usize {
        self.each[0].checked_div(self.each[1]).unwrap_or(0)
    }

    /// The batch of a head of queries.
    pub fn batch(&self, head: usize) -> usize {
        head / self.each[0]
    }
}

/// The matrices of a tensor (..., rows, columns), or (..., rows) of one column.
pub struct Matrices {
    /// The offset of each, in elements.
    pub offsets: Vec<isize>,
    /// The step from row to row.
    pub row: isize,
    /// The step from column to column.
    pub column: isize,
}

impl Matrices {
    /// Those of the last two axes.
    pub fn of(meta: &Meta) -> Self {
        let axes = meta.shape.rank() - 2;
        let offsets = offsets(&meta.shape[..axes], &meta.strides[..axes]);
        Matrices { offsets, row: meta.strides[axes], column: meta.strides[axes + 1] }
    }

    /// Those of the last axis.
    pub fn of_rows(meta: &Meta) -> Self {
        let axes = meta.shape.rank() - 1;
        let offsets = offsets(&meta.shape[..axes], &meta.strides[..axes]);
        Matrices { offsets, row: meta.strides[axes], column: 0 }
    }

    /// Those of the last two axes once the tensor is broadcast to a shape.
    pub fn broadcast(meta: &Meta, to: &Shape) -> Self {
        let strides = spread(meta, to);
        let axes = to.rank() - 2;
        let offsets = offsets(&to[..axes], &strides[..axes]);
        Matrices { offsets, row: strides[axes], column: strides[axes + 1] }
    }

    /// The address of a row of matrix `i`, of a tensor that starts at `first`.
    pub fn at<T>(&self, first: *const T, i: usize, row: usize) -> *const T {
        first.wrapping_offset(self.offsets[i] + row as isize * self.row)
    }
}

/// The strides of a tensor broadcast to a shape.
pub fn spread(meta: &Meta, to: &Shape) -> Vec<isize> {
    let added = to.rank() - meta.shape.rank();
    let own = |d: usize| d.checked_sub(added).filter(|&own| meta.shape[own] != 1);
    (0..to.rank()).map(|d| own(d).map_or(0, |own| meta.strides[own])).collect()
}

/// The offsets of all elements of these extents, in row-major order.
pub fn offsets(extents: &[usize], strides: &[isize]) -> Vec<isize> {
    let mut found = vec![0];
    for (&extent, &stride) in extents.iter().zip(strides) {
        let steps = || (0..extent as isize).map(|i| i * stride);
        found = found.iter().flat_map(|&base| steps().map(move |step| base + step)).collect();
    }
    found
}

/// How blocks of rows of a tensor are read: in place, or copied to the type of the sums.
#[derive(Clone, Copy)]
pub struct Blocks {
    /// The number of columns.
    pub columns: usize,
    /// The strides of what is read.
    pub steps: [isize; 2],
    in_place: bool,
}

impl Blocks {
    /// How those of a tensor of this type are read.
    pub fn new<T: Factor>(of: &Matrices, columns: usize) -> Self {
        let in_place = T::IN_PLACE && of.column == 1 && of.row >= columns.max(1) as isize;
        let row = if in_place { of.row } else { columns.max(1) as isize };
        Blocks { columns, steps: [row, 1], in_place }
    }

    /// The strides of the transposed matrix.
    pub fn turned(&self) -> [isize; 2] {
        [self.steps[1], self.steps[0]]
    }

    /// The elements that a copy of so many rows takes.
    pub fn room(&self, rows: usize) -> usize {
        if self.in_place { 0 } else { rows * self.columns }
    }

    /// The address of `rows` rows that start at `at`, copied to `room` unless read in place.
    ///
    /// # Safety
    /// These rows can be read, and `room` has [`Blocks::room`] elements.
    pub unsafe fn load<T: Factor>(
        &self,
        of: &Matrices,
        at: *const T,
        rows: usize,
        room: &mut [T::Sum],
    ) -> *const T::Sum {
        if self.in_place {
            return at.cast();
        }
        let from = Matrix { at, row: of.row, column: of.column };
        let room = &mut room[..rows * self.columns];
        // SAFETY: by the caller's promise.
        unsafe { gather_matrix(from, self.columns, room) };
        room.as_ptr()
    }
}
