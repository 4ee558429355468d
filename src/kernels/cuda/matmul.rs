//! Products of matrices.

use super::program::Program;
use super::source::Source;
use super::types::{computed, stored};
use super::walk::Walk;
use crate::ops::Meta;
use crate::shape::Shape;

const TEMPLATES: &str = include_str!("c/matmul.cu");
/// The side of the part of a result that a block computes.
const TILE: usize = 64;

/// The program of a product.
pub fn program([a, b, y]: [&Meta; 3]) -> Program {
    let [left, right, to] = [a, b, y].map(batch);
    let walk = Walk::new(&to.shape, &[&left, &right, &to]);
    let dtypes = [a.dtype, b.dtype];
    let mut source = Source::new("matmul", &dtypes, &[y.dtype]).with(TEMPLATES).waiting();
    let (batch, count) = (source.walk(&walk), source.size(walk.count));
    let [m, n, result] = [a, b, y].map(|meta| matrix(&mut source, meta));
    let types = format!("{}, {}", computed(y.dtype), stored(y.dtype));
    source.line(format!(
        "multiply<{types}>(g.in0, g.in1, g.out0, {batch}, {count}, {m}, {n}, {result});"
    ));
    let tiles: usize = y.shape[y.shape.rank() - 2..].iter().map(|n| n.div_ceil(TILE)).product();
    Program::one(source.blocks(walk.count * tiles), 2, 1)
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
