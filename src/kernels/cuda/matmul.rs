//! Products of matrices.

use super::program::{Library, Place, Program, Step};
use super::source::Source;
use super::types::computed;
use super::walk::Walk;
use crate::device::cuda::Demand;
use crate::device::cuda::product::{Operand, Product};
use crate::dtype::DType;
use crate::ops::Meta;
use crate::shape::Shape;

const TEMPLATES: &str = include_str!("c/matmul.cu");
/// The side of the part of a result that a block computes.
const TILE: usize = 64;

/// Matrices along the last two axes of a tensor, and where it is.
#[derive(Clone)]
pub struct Matrix {
    pub meta: Meta,
    pub place: Place,
}

impl Matrix {
    /// As kernels take it.
    pub fn dense(&self) -> (DType, Place) {
        (self.meta.dtype, self.place)
    }

    /// Some of the columns.
    pub fn columns(&self, first: usize, count: usize) -> Matrix {
        let mut meta = self.meta.clone();
        let last = meta.shape.rank() - 1;
        let offset = first as isize * meta.strides[last] * meta.dtype.size() as isize;
        meta.shape = meta.shape.with(last, count);
        Matrix { meta, place: self.place.moved(offset) }
    }

    /// With rows for columns.
    pub fn transposed(&self) -> Matrix {
        let mut meta = self.meta.clone();
        let last = meta.shape.rank() - 1;
        let (rows, columns) = (meta.shape[last - 1], meta.shape[last]);
        meta.shape = meta.shape.with(last, rows).with(last - 1, columns);
        meta.strides.swap(last - 1, last);
        Matrix { meta, place: self.place }
    }

    /// The products with others, written to a third tensor or added to it.
    pub fn times(&self, other: &Matrix, to: &Matrix, adds: bool) -> Step {
        step([&self.meta, &other.meta, &to.meta], [self.place, other.place, to.place], adds)
    }
}

/// The program of a product.
pub fn program(io: [&Meta; 3]) -> Program {
    let places = [Place::Input(0), Place::Input(1), Place::Output(0, 0)];
    Program { steps: vec![step(io, places, false)], ..Program::default() }
}

/// The product of tensors at these places, as a step; sums may be added to what is there.
fn step([a, b, y]: [&Meta; 3], places: [Place; 3], adds: bool) -> Step {
    let [left, right, to] = [a, b, y].map(batch);
    let walk = Walk::new(&to.shape, &[&left, &right, &to]);
    let dtypes = [a.dtype, b.dtype];
    let mut source = Source::new("matmul", &dtypes, &[y.dtype]).with(TEMPLATES).waiting();
    let (batch, count) = (source.walk(&walk), source.size(walk.count));
    let [m, n, result] = [a, b, y].map(|meta| matrix(&mut source, meta));
    let wide = computed(y.dtype);
    source.line(format!(
        "multiply<{wide}, {adds}>(g.in0, g.in1, g.out0, {batch}, {count}, {m}, {n}, {result});"
    ));
    let tiles: usize = y.shape[y.shape.rank() - 2..].iter().map(|n| n.div_ceil(TILE)).product();
    let library = product([a, b, y], &walk, adds).map(|product| {
        let demand = Demand::Product(product);
        Box::new(Library { demand, places: places.to_vec(), around: Default::default() })
    });
    Step { source: source.blocks(walk.count * tiles), places: places.to_vec(), library }
}

/// The product for a library, which takes floats in matrices whose rows or columns are dense, and
/// one step from each matrix of a batch to the next.
fn product([a, b, y]: [&Meta; 3], walk: &Walk, adds: bool) -> Option<Product> {
    let steps = walk.steps()?;
    let is_some = [a, b, y].iter().all(|meta| meta.numel() > 0);
    if !a.dtype.is_float() || a.dtype.is_storage() || !is_some {
        return None;
    }
    let operand = |tensor: usize, meta: &Meta| operand(meta, tensor, steps[tensor]);
    let all = [operand(0, a)?, operand(1, b)?, operand(2, y)?];
    let extent = |meta: &Meta, d: usize| meta.shape[meta.shape.rank() - d];
    let (rows, depth, columns) = (extent(a, 2), extent(a, 1), extent(b, 1));
    let of = |rows, columns, operands| Product {
        dtype: a.dtype,
        result: y.dtype,
        adds,
        rows,
        columns,
        depth,
        batch: walk.count,
        operands,
    };
    Some(match all[2].is_turned {
        false => of(rows, columns, all),
        // The transposed result, whose columns are dense, is a product of transposed matrices.
        true => of(columns, rows, [all[1].turned(), all[0].turned(), all[2].turned()]),
    })
}

/// Where the last two dimensions are matrices whose rows or columns are dense and do not overlap.
fn operand(meta: &Meta, tensor: usize, step: isize) -> Option<Operand> {
    let rank = meta.shape.rank();
    let [rows, columns] = [2, 1].map(|d| meta.shape[rank - d]);
    let [down, across] = [2, 1].map(|d| meta.strides[rank - d]);
    // From a lone row or column there is no step.
    let leading = |count: usize, stride: isize, length: usize| match count {
        1 => Some(length),
        _ => usize::try_from(stride).ok().filter(|&stride| stride >= length),
    };
    let by_rows = (across == 1 || columns == 1).then(|| leading(rows, down, columns)).flatten();
    let by_columns = (down == 1 || rows == 1).then(|| leading(columns, across, rows)).flatten();
    let is_turned = by_rows.is_some();
    let leading = by_rows.or(by_columns)?;
    Some(Operand { tensor, is_turned, leading, step })
}

/// The dimensions before the matrices.
fn batch(meta: &Meta) -> Meta {
    let rank = meta.shape.rank() - 2;
    let shape: Shape = meta.shape[..rank].iter().copied().collect();
    Meta { dtype: meta.dtype, shape, strides: meta.strides[..rank].into() }
}

fn matrix(source: &mut Source, meta: &Meta) -> String {
    let rank = meta.shape.rank();
    let [rows, columns] = [2, 1].map(|d| source.size(meta.shape[rank - d]));
    let [down, across] = [2, 1].map(|d| source.integer(meta.strides[rank - d] as i64));
    format!("Matrix{{{rows}, {columns}, {down}, {across}}}")
}
