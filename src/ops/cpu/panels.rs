//! A batch of matrix products, cut into panels of the result.

use smallvec::SmallVec;

use crate::ops::Meta;

/// Sides of a panel; the larger one is taken where enough panels are left for many threads.
const SIDES: [usize; 2] = [192, 384];
/// Panels that keep many threads busy.
const MANY: usize = 128;

/// Steps of one operand: from matrix to matrix along each batch axis, and within a matrix.
pub struct Operand {
    batch: SmallVec<[isize; 4]>,
    /// From a row to the next.
    pub row: isize,
    /// From a column to the next.
    pub column: isize,
}

impl Operand {
    fn new(meta: &Meta, batch: &[usize]) -> Operand {
        let (outer, axes) = (meta.shape.rank() - 2, batch.len());
        // An axis that is missing or has one matrix repeats it.
        let stride = |axis: usize| {
            let own = (axis + outer).checked_sub(axes).filter(|&d| meta.shape[d] != 1);
            own.map_or(0, |d| meta.strides[d])
        };
        let (row, column) = (meta.strides[outer], meta.strides[outer + 1]);
        Operand { batch: (0..axes).map(stride).collect(), row, column }
    }

    fn offset(&self, index: &[usize], row: usize, column: usize) -> isize {
        let matrix: isize = self.batch.iter().zip(index).map(|(&s, &i)| s * i as isize).sum();
        matrix + row as isize * self.row + column as isize * self.column
    }
}

/// A batch of products of m x k and k x n matrices. The panels depend on the sizes alone.
pub struct Panels {
    /// m, n and k.
    size: [usize; 3],
    batch: SmallVec<[usize; 4]>,
    /// The left factors, the right factors, and the products.
    pub operands: [Operand; 3],
    /// Rows and columns of a panel.
    pub side: [usize; 2],
}

/// One panel.
pub struct Panel {
    /// Where its rows of a, its columns of b and its elements of c start.
    pub start: [isize; 3],
    /// Its m, n and k.
    pub size: [usize; 3],
}

impl Panels {
    /// The panels of `c = a b` for `io = [a, b, c]`.
    pub fn new(io: &[&Meta]) -> Panels {
        let (a, c) = (io[0], io[2]);
        let axes = c.shape.rank() - 2;
        let batch: SmallVec<[usize; 4]> = c.shape[..axes].iter().copied().collect();
        let operands = [io[0], io[1], io[2]].map(|meta| Operand::new(meta, &batch));
        let size = [c.shape[axes], c.shape[axes + 1], a.shape[a.shape.rank() - 1]];
        let mut panels = Panels { size, batch, operands, side: [0; 2] };
        while panels.fold() {}
        panels.side = panels.sides();
        panels
    }

    /// Makes the innermost batch axis part of the rows where all its matrices are multiplied by
    /// the same one and lie below one another.
    fn fold(&mut self) -> bool {
        let Some(&extent) = self.batch.last() else { return false };
        let (m, axis) = (self.size[0], self.batch.len() - 1);
        let [a, b, c] = &mut self.operands;
        let below = |o: &Operand| m == 1 || o.batch[axis] == o.row * m as isize;
        if extent != 1 && !(b.batch[axis] == 0 && below(a) && below(c)) {
            return false;
        }
        if m == 1 && extent != 1 {
            (a.row, c.row) = (a.batch[axis], c.batch[axis]);
        }
        for operand in [a, b, c] {
            operand.batch.pop();
        }
        self.batch.pop();
        self.size[0] *= extent;
        true
    }

    fn sides(&self) -> [usize; 2] {
        let [m, n, _] = self.size;
        let batches: usize = self.batch.iter().product();
        let count = |side: usize| batches * m.div_ceil(side) * n.div_ceil(side);
        let side = if count(SIDES[1]) >= MANY { SIDES[1] } else { SIDES[0] };
        [side.min(m), side.min(n)]
    }

    /// Panels of one product, down and across.
    fn grid(&self) -> [usize; 2] {
        [0, 1].map(|d| self.size[d].div_ceil(self.side[d].max(1)))
    }

    /// How many panels there are in all.
    pub fn count(&self) -> usize {
        self.grid().iter().chain(&self.batch).product()
    }

    /// Panel `index` of [`Panels::count`].
    pub fn get(&self, index: usize) -> Panel {
        let [down, across] = self.grid();
        let (row, column) = (index / across % down * self.side[0], index % across * self.side[1]);
        let batch = self.batch_index(index / (across * down));
        let [a, b, c] = &self.operands;
        let [m, n, k] = self.size;
        Panel {
            start: [
                a.offset(&batch, row, 0),
                b.offset(&batch, 0, column),
                c.offset(&batch, row, column),
            ],
            size: [self.side[0].min(m - row), self.side[1].min(n - column), k],
        }
    }

    fn batch_index(&self, mut product: usize) -> SmallVec<[usize; 4]> {
        let mut index: SmallVec<[usize; 4]> = smallvec::smallvec![0; self.batch.len()];
        for (i, extent) in index.iter_mut().zip(&self.batch).rev() {
            (*i, product) = (product % extent, product / extent);
        }
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;

    #[test]
    fn a_batch_with_one_right_factor_is_one_product() {
        let meta = |shape: &[usize]| Meta::new(DType::Float32, shape);
        let (a, b, c) = (meta(&[2, 3, 4, 5]), meta(&[5, 6]), meta(&[2, 3, 4, 6]));
        let panels = Panels::new(&[&a, &b, &c]);
        assert_eq!((panels.size, panels.count()), ([24, 6, 5], 1));
        let swapped = Meta { strides: [20, 40, 5, 1][..].into(), ..a };
        let panels = Panels::new(&[&swapped, &b, &c]);
        assert_eq!((panels.size, panels.count()), ([4, 6, 5], 6));
    }
}
