//! Products of matrices, or of batches of them, in a form suited to kernels.

use smallvec::SmallVec;

use crate::dtype::DType;
use crate::ops::Meta;
use crate::shape::{Shape, Strides};

/// An axis of the batch.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Axis {
    /// The number of matrices along it.
    pub extent: usize,
    /// Strides of the matrices of a, b and y, in elements; 0 where one is broadcast.
    pub steps: [isize; 3],
}

/// The matrices of `y = a b`, with batches broadcast, axes merged where possible, and consecutive
/// matrices that are multiplied by the same b stacked into one.
#[derive(Clone, Debug)]
pub struct Matrices {
    /// The type of all three.
    pub dtype: DType,
    /// The remaining axes of the batch, each longer than 1.
    pub batch: SmallVec<[Axis; 4]>,
    /// m, n and k.
    pub size: [usize; 3],
    /// Strides from row to row and from column to column, in elements, of a, b and y.
    pub steps: [[isize; 2]; 3],
}

impl Matrices {
    /// The matrices of a, b and y.
    pub fn new(io: [&Meta; 3]) -> Self {
        let [a, _, y] = io;
        let axes = y.shape.rank() - 2;
        let [down, across] = [2, 1].map(|back| move |t: &Meta| t.strides[t.shape.rank() - back]);
        let mut matrices = Matrices {
            dtype: y.dtype,
            batch: SmallVec::new(),
            size: [y.shape[axes], y.shape[axes + 1], a.shape[a.shape.rank() - 1]],
            steps: io.map(|meta| [down(meta), across(meta)]),
        };
        let axis = |d| Axis { extent: y.shape[d], steps: io.map(|meta| step(meta, d, axes)) };
        (0..axes).for_each(|d| matrices.push(axis(d)));
        while matrices.fold() {}
        matrices
    }

    /// Adds an innermost axis, merged into the previous one if possible.
    fn push(&mut self, axis: Axis) {
        let whole = axis.steps.map(|step| step * axis.extent as isize);
        match self.batch.last_mut() {
            _ if axis.extent == 1 => {}
            Some(outer) if outer.steps == whole => {
                *outer = Axis { extent: outer.extent * axis.extent, ..axis };
            }
            _ => self.batch.push(axis),
        }
    }

    /// Merges the innermost axis into the rows if possible.
    fn fold(&mut self) -> bool {
        let (Some(&axis), rows) = (self.batch.last(), self.size[0]) else { return false };
        let is_below = |i: usize| rows == 1 || axis.steps[i] == self.steps[i][0] * rows as isize;
        if axis.steps[1] != 0 || !is_below(0) || !is_below(2) {
            return false;
        }
        if rows == 1 {
            // With a single row, the row strides had no effect.
            [0, 2].into_iter().for_each(|i| self.steps[i][0] = axis.steps[i]);
        }
        self.size[0] *= axis.extent;
        self.batch.pop();
        true
    }

    /// The number of products.
    pub fn count(&self) -> usize {
        self.batch.iter().map(|axis| axis.extent).product()
    }

    /// The number of rows of all results.
    pub fn rows(&self) -> usize {
        self.count() * self.size[0]
    }

    /// Bytes of a row of the result.
    pub fn row_bytes(&self) -> usize {
        self.size[1] * self.dtype.size()
    }

    /// The first `rows` rows of all results: a part of the first matrix, or all the matrices of the
    /// inner axes and a part of the next axis.
    pub fn first(&self, rows: usize) -> Self {
        let mut first = self.clone();
        first.size[0] = rows.min(self.size[0]);
        let mut count = rows / first.size[0].max(1);
        for axis in first.batch.iter_mut().rev() {
            axis.extent = axis.extent.min(count);
            count /= axis.extent.max(1);
        }
        first.batch.retain(|axis| axis.extent != 1);
        first
    }

    /// The metas of a, b and y, each with all axes of the batch.
    pub fn metas(&self) -> [Meta; 3] {
        let [m, n, k] = self.size;
        let sides = [[m, k], [k, n], [m, n]];
        [0, 1, 2].map(|i| {
            let extents = self.batch.iter().map(|axis| axis.extent);
            let steps = self.batch.iter().map(|axis| axis.steps[i]);
            let shape: Shape = extents.chain(sides[i]).collect();
            let strides: Strides = steps.chain(self.steps[i]).collect();
            Meta { dtype: self.dtype, shape, strides }
        })
    }
}

/// The stride along axis `d` of the result's `axes` batch axes; 0 where the operand is broadcast.
fn step(meta: &Meta, d: usize, axes: usize) -> isize {
    let own = (d + meta.shape.rank() - 2).checked_sub(axes).filter(|&own| meta.shape[own] != 1);
    own.map_or(0, |own| meta.strides[own])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(shape: &[usize]) -> Meta {
        Meta::new(DType::Float32, shape)
    }

    #[test]
    fn a_batch_with_one_right_factor_is_one_product() {
        let (a, b, y) = (meta(&[2, 3, 4, 5]), meta(&[5, 6]), meta(&[2, 3, 4, 6]));
        for b in [b.clone(), meta(&[1, 1, 5, 6])] {
            let one = Matrices::new([&a, &b, &y]);
            assert_eq!((one.size, one.count(), one.rows()), ([24, 6, 5], 1, 24));
        }
        let swapped = Meta { strides: [20, 40, 5, 1][..].into(), ..a };
        let apart = Matrices::new([&swapped, &b, &y]);
        assert_eq!((apart.size, apart.count(), apart.rows()), ([4, 6, 5], 6, 24));
    }

    #[test]
    fn axes_that_lie_in_order_are_one() {
        let (a, b, y) = (meta(&[2, 3, 4, 5]), meta(&[2, 3, 5, 6]), meta(&[2, 3, 4, 6]));
        let one = Matrices::new([&a, &b, &y]);
        assert_eq!(one.batch[..], [Axis { extent: 6, steps: [20, 30, 24] }]);
        let repeated = Matrices::new([&a, &meta(&[3, 5, 6]), &y]);
        let [outer, inner] = repeated.batch[..] else { panic!("{repeated:?}") };
        assert_eq!(outer, Axis { extent: 2, steps: [60, 0, 72] });
        assert_eq!(inner, Axis { extent: 3, steps: [20, 30, 24] });
    }

    #[test]
    fn the_first_rows_are_of_the_inner_axes_first() {
        let (a, b, y) = (meta(&[4, 6, 8, 5]), meta(&[6, 5, 7]), meta(&[4, 6, 8, 7]));
        let all = Matrices::new([&a, &b, &y]);
        let shapes = |rows| all.first(rows).metas().map(|meta| meta.shape.to_vec());
        assert_eq!(shapes(3), [&[3, 5][..], &[5, 7], &[3, 7]]);
        assert_eq!(shapes(8), [&[8, 5][..], &[5, 7], &[8, 7]]);
        assert_eq!(shapes(24), [&[3, 8, 5][..], &[3, 5, 7], &[3, 8, 7]]);
        assert_eq!(shapes(96), [&[2, 6, 8, 5][..], &[2, 6, 5, 7], &[2, 6, 8, 7]]);
        assert_eq!(all.first(96).metas()[1].strides[..], [0, 35, 7, 1]);
    }
}
