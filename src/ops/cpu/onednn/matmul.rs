//! Matrix products by oneDNN.

use smallvec::SmallVec;

use super::layout::{Layout, Place, Tensor, compute_types, describe, is_disjoint, settled};
use super::steps::Steps;
use crate::device::onednn::{self, Addend, Descriptor, Library, api::MAX_RANK};
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::{Meta, Width};
use crate::shape::Shape;

/// One batch dimension: its extent, and the strides of a and b along it (0: not there).
type Batch = (usize, isize, isize);

/// A matrix product with its batch dimensions broadcast and merged.
struct Problem {
    batch: SmallVec<[Batch; 4]>,
    /// M, N, K.
    sizes: [usize; 3],
    /// Strides of a along M and K.
    a: [isize; 2],
    /// Strides of b along K and N.
    b: [isize; 2],
    adds: Adds,
}

/// The product of `io` = a, b, y (y row-major, nothing empty); `None` where oneDNN is missing or
/// has no fast implementation.
///
/// # Errors
/// [`crate::Error::Library`].
pub fn matmul(io: &[&Meta], width: Width) -> Result<Option<Steps>> {
    adding(io, Adds::Nothing, width)
}

/// What a product is added to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Adds {
    /// Nothing.
    Nothing,
    /// Input 2, which has one row.
    Row,
    /// What lies where the result goes.
    Result,
}

/// The same, added to something.
///
/// # Errors
/// [`crate::Error::Library`].
pub fn adding(io: &[&Meta], adds: Adds, width: Width) -> Result<Option<Steps>> {
    by_either(io, adds, [Operands::AsTheyLie, Operands::RowMajor], width)
}

/// The product with b in the layout that the primitive likes best; `None` also for several
/// matrices b.
///
/// # Errors
/// As [`matmul`].
pub fn packed(io: &[&Meta], width: Width) -> Result<Option<Steps>> {
    by_either(io, Adds::Nothing, [Operands::Packed], width)
}

/// How the operands are handed over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operands {
    /// As they lie where that suits.
    AsTheyLie,
    /// Copied.
    RowMajor,
    /// The right one as the primitive likes it.
    Packed,
}

/// The first way that oneDNN has a fast implementation for.
fn by_either<const N: usize>(
    io: &[&Meta],
    adds: Adds,
    ways: [Operands; N],
    width: Width,
) -> Result<Option<Steps>> {
    let Some(library) = onednn::library() else { return Ok(None) };
    let problem = Problem::new([io[0], io[1], io[2]], adds);
    if problem.batch.len() + 2 > MAX_RANK {
        return Ok(None);
    }
    for &compute in compute_types(io[0].dtype) {
        for how in ways {
            let steps = problem.steps(library, [io[0].dtype, compute], how, width)?;
            if steps.is_some() {
                return Ok(steps);
            }
        }
    }
    Ok(None)
}

impl Problem {
    fn new([a, b, y]: [&Meta; 3], adds: Adds) -> Self {
        let (rank, ra, rb) = (y.shape.rank(), a.shape.rank(), b.shape.rank());
        let stride = |t: &Meta, d: usize| {
            let at = (d + t.shape.rank()).checked_sub(rank);
            at.filter(|&at| t.shape[at] != 1).map_or(0, |at| t.strides[at])
        };
        let mut problem = Problem {
            batch: SmallVec::new(),
            sizes: [y.shape[rank - 2], y.shape[rank - 1], a.shape[ra - 1]],
            a: [a.strides[ra - 2], a.strides[ra - 1]],
            b: [b.strides[rb - 2], b.strides[rb - 1]],
            adds,
        };
        (0..rank - 2).for_each(|d| problem.push((y.shape[d], stride(a, d), stride(b, d))));
        problem.fold();
        problem
    }

    /// Adds a batch dimension inside the others, as part of its neighbour where it can be.
    fn push(&mut self, (extent, a, b): Batch) {
        if extent == 1 {
            return;
        }
        let steps = extent as isize;
        match self.batch.last_mut() {
            Some(outer) if outer.1 == a * steps && outer.2 == b * steps => {
                *outer = (outer.0 * extent, a, b);
            }
            _ => self.batch.push((extent, a, b)),
        }
    }

    /// Batches that share one b are rows of one larger a.
    fn fold(&mut self) {
        while let Some(&(extent, a, 0)) = self.batch.last() {
            let rows = self.sizes[0];
            if rows != 1 && a != self.a[0] * rows as isize {
                return;
            }
            // With one row, its stride was never taken.
            self.a[0] = if rows == 1 { a } else { self.a[0] };
            self.sizes[0] *= extent;
            self.batch.pop();
        }
    }

    /// Operand `i` with batch extents of 1 where it is broadcast; with `expand`, one that is
    /// broadcast along some batch dimensions only has their full extents, to be packed. Where both
    /// repeat (expanded views), a has the full extent: the result's must stand in one of them.
    fn operand(
        &self,
        i: usize,
        dtype: DType,
        [rows, cols]: [usize; 2],
        matrix: [isize; 2],
        expand: bool,
    ) -> Tensor {
        let stride = |batch: &Batch| if i == 0 { batch.1 } else { batch.2 };
        let full = expand && self.batch.iter().any(|x| stride(x) != 0);
        let repeats = |x: &Batch| stride(x) == 0 && !full && !(i == 0 && x.2 == 0);
        let extents = self.batch.iter().map(|x| if repeats(x) { 1 } else { x.0 });
        let shape = extents.chain([rows, cols]).collect();
        let strides = self.batch.iter().map(stride).chain(matrix).collect();
        Tensor { place: Place::Input(i), meta: Meta { dtype, shape, strides } }
    }

    fn steps(
        &self,
        library: &'static Library,
        [dtype, compute]: [DType; 2],
        how: Operands,
        width: Width,
    ) -> Result<Option<Steps>> {
        if how == Operands::Packed && !self.batch.is_empty() {
            return Ok(None);
        }
        let ([m, n, k], copies) = (self.sizes, how == Operands::RowMajor);
        let a = self.operand(0, dtype, [m, k], self.a, copies);
        let b = self.operand(1, dtype, [k, n], self.b, copies);
        let shape = self.batch.iter().map(|x| x.0).chain([m, n]).collect::<Shape>();
        let y = Tensor { place: Place::Output(0), meta: Meta::new(dtype, shape) };
        let tensors = [&a, &b, &y];
        let layouts = tensors.map(|t| layout(&t.meta, compute, copies));
        let [a, b, y] = &layouts;
        let b = match how {
            Operands::Packed => Some(Descriptor::any(library, compute, &[k as i64, n as i64])?),
            _ => describe(library, b)?,
        };
        let (Some(a), Some(b), Some(y)) = (describe(library, a)?, b, describe(library, y)?) else {
            return Ok(None);
        };
        let row = (self.adds == Adds::Row).then(|| self.row(dtype));
        let addend = match &row {
            Some(row) => describe(library, &row.meta)?.map(Addend::Row),
            None => Some(if self.adds == Adds::Result { Addend::Result } else { Addend::Nothing }),
        };
        let Some(addend) = addend else { return Ok(None) };
        let product = onednn::matmul(library, [a, b, y], addend, width.0)?;
        let Some((product, packed)) = product else { return Ok(None) };
        let mut layouts = layouts.map(Layout::Strided);
        if how == Operands::Packed {
            layouts[1] = Layout::Packed(packed, compute);
        }
        let mut tensors: SmallVec<[_; 4]> = tensors.into_iter().zip(layouts).collect();
        if let Some(row) = &row {
            tensors.insert(2, (row, Layout::Strided(row.meta.clone())));
        }
        Steps::new(library, product, &tensors, width)
    }

    /// The row that is added.
    fn row(&self, dtype: DType) -> Tensor {
        let ones = std::iter::repeat_n(1, self.batch.len() + 1);
        let shape: Shape = ones.chain([self.sizes[1]]).collect();
        Tensor { place: Place::Input(2), meta: Meta::new(dtype, shape) }
    }
}

/// The tensor as it is where its strides suit, else row-major.
fn layout(meta: &Meta, compute: DType, copy: bool) -> Meta {
    if !copy && meta.dtype == compute && suits(meta) {
        return matrices(meta);
    }
    matrices(&Meta::new(compute, meta.shape.clone()))
}

/// Whether the matrices are row-major or column-major, with room between rows or columns.
fn suits(meta: &Meta) -> bool {
    let rank = meta.shape.rank();
    let ([rows, cols], [down, right]) = (
        [meta.shape[rank - 2], meta.shape[rank - 1]],
        [meta.strides[rank - 2], meta.strides[rank - 1]],
    );
    let row_major = (cols == 1 || right == 1) && (rows == 1 || down >= cols as isize);
    let column_major = (rows == 1 || down == 1) && (cols == 1 || right >= rows as isize);
    (row_major || column_major) && is_disjoint(meta)
}

/// The same with strides that are never taken (extents of 1) set so that one of the matrix's two
/// is 1 and the other its leading dimension, and those of batches beyond the matrix.
fn matrices(meta: &Meta) -> Meta {
    let mut meta = settled(meta);
    let (r, c) = (meta.shape.rank() - 2, meta.shape.rank() - 1);
    let cols = meta.shape[c];
    match (meta.shape[r] == 1, cols == 1) {
        (true, true) => (meta.strides[r], meta.strides[c]) = (1, 1),
        (true, false) if meta.strides[c] == 1 => meta.strides[r] = cols as isize,
        (true, false) => meta.strides[r] = 1,
        (false, true) => meta.strides[c] = 1,
        (false, false) => {}
    }
    meta
}

#[cfg(test)]
#[path = "matmul_tests.rs"]
mod tests;
