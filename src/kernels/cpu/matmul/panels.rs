//! A batch of matrix products, cut into panels of the result.

use crate::kernels::cpu::matmul::matrices::Matrices;
use crate::ops::Meta;

/// Side lengths of panels; the larger one is used if it leaves enough panels for many threads.
const SIDES: [usize; 2] = [192, 384];
/// About the side of panels of a single row or column.
const NARROW: usize = 512;
/// The number of panels that keeps many threads busy.
const MANY: usize = 128;

/// A batch of products of m x k and k x n matrices. The panels depend on the sizes alone.
pub struct Panels {
    /// The left factors, the right factors and the products.
    pub matrices: Matrices,
    /// Rows and columns of a panel.
    pub side: [usize; 2],
}

/// One panel.
pub struct Panel {
    /// The offsets of its rows of a, its columns of b and its elements of c.
    pub start: [isize; 3],
    /// Its m, n and k.
    pub size: [usize; 3],
}

impl Panels {
    /// The panels of `c = a b` for `io = [a, b, c]`.
    pub fn new(io: &[&Meta]) -> Panels {
        let mut panels = Panels { matrices: Matrices::new([io[0], io[1], io[2]]), side: [0; 2] };
        panels.side = panels.sides();
        panels
    }

    fn sides(&self) -> [usize; 2] {
        let [m, n, _] = self.matrices.size;
        let count = |side: usize| self.matrices.count() * m.div_ceil(side) * n.div_ceil(side);
        let side = match (m.min(n), count(SIDES[1]) >= MANY) {
            (1, _) => narrow(m.max(n)),
            (_, true) => SIDES[1],
            (_, false) => SIDES[0],
        };
        [side.min(m), side.min(n)]
    }

    /// The panels of one product, vertically and horizontally.
    fn grid(&self) -> [usize; 2] {
        [0, 1].map(|d| self.matrices.size[d].div_ceil(self.side[d].max(1)))
    }

    /// The total number of panels.
    pub fn count(&self) -> usize {
        self.grid().iter().product::<usize>() * self.matrices.count()
    }

    /// Panel `index` of [`Panels::count`].
    pub fn get(&self, index: usize) -> Panel {
        let [down, across] = self.grid();
        let (row, column) = (index / across % down * self.side[0], index % across * self.side[1]);
        let matrix = self.matrix(index / (across * down));
        let start = |i: usize, row: usize, column: usize| {
            let [down, across] = self.matrices.steps[i];
            matrix[i] + row as isize * down + column as isize * across
        };
        let [m, n, k] = self.matrices.size;
        Panel {
            start: [start(0, row, 0), start(1, 0, column), start(2, row, column)],
            size: [self.side[0].min(m - row), self.side[1].min(n - column), k],
        }
    }

    /// The offsets of the matrices of a product.
    fn matrix(&self, mut product: usize) -> [isize; 3] {
        let mut start = [0; 3];
        for axis in self.matrices.batch.iter().rev() {
            let index = (product % axis.extent) as isize;
            start = [0, 1, 2].map(|i| start[i] + index * axis.steps[i]);
            product /= axis.extent;
        }
        start
    }
}

/// The side of panels of so many columns or rows, of which two or four threads get equal parts.
fn narrow(extent: usize) -> usize {
    let panels = 4 * extent.div_ceil(4 * NARROW);
    extent.div_ceil(panels).next_multiple_of(16)
}
