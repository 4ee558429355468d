//! Matrix products by oneDNN.

mod cut;

use smallvec::SmallVec;

use super::layout::{Layout, Location, Tensor, compute_types, is_disjoint, settled};
use super::steps::Steps;
use crate::device::onednn::{self, Descriptor, Library, api::MAX_RANK};
use crate::dtype::DType;
use crate::error::Result;
use crate::kernels::Width;
use crate::kernels::cpu::matmul::matrices::{Axis, Matrices};
use crate::ops::Meta;
use crate::shape::Shape;
use cut::Product;

/// A matrix product, optionally added to another operand.
struct Problem {
    matrices: Matrices,
    adds: Adds,
}

/// The product of `io` = a, b, y (y row-major, nothing empty) by the team, or by the calling thread
/// alone if `width` is `None`. `None` where oneDNN is missing or has no fast implementation.
///
/// # Errors
/// [`crate::Error::Library`].
pub fn matmul(io: &[&Meta], width: Option<Width>) -> Result<Option<Steps>> {
    by_either(io, Adds::Nothing, [Operands::AsTheyLie, Operands::RowMajor], width)
}

/// Whether products of this type are computed in it, rather than in a wider one.
///
/// # Errors
/// [`crate::Error::Library`].
pub fn computes_in(dtype: DType) -> Result<bool> {
    let Some(library) = onednn::library() else { return Ok(dtype == DType::Float32) };
    let square = Meta::new(dtype, [64, 64]);
    let problem = Problem::new([&square, &square, &square], Adds::Nothing);
    let steps = problem.steps(library, [dtype, dtype], Operands::AsTheyLie, None)?;
    Ok(onednn::is_supported(dtype) && steps.is_some())
}

/// The other operand that a product is added to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Adds {
    /// Nothing.
    Nothing,
    /// Input 2, which has one row.
    Row,
    /// The previous contents of the result.
    Result,
}

/// The product, optionally added to another operand.
///
/// # Errors
/// [`crate::Error::Library`].
pub fn adding(io: &[&Meta], adds: Adds, width: Width) -> Result<Option<Steps>> {
    by_either(io, adds, [Operands::AsTheyLie, Operands::RowMajor], Some(width))
}

/// The product with b in the layout that the primitive prefers; also `None` for several matrices b,
/// and where the primitive's implementation differs from that of [`matmul`], which may round
/// differently.
///
/// # Errors
/// As [`matmul`].
pub fn packed(io: &[&Meta], width: Option<Width>) -> Result<Option<Steps>> {
    let packed = by_either(io, Adds::Nothing, [Operands::Packed], width)?;
    let usual = matmul(io, width)?;
    let is_same =
        |of: &Steps| usual.is_some_and(|usual| usual.implementation() == of.implementation());
    Ok(packed.filter(is_same))
}

/// The form in which the operands are passed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operands {
    /// With their own strides if the primitive supports them.
    AsTheyLie,
    /// Copied.
    RowMajor,
    /// The right one packed as the primitive prefers.
    Packed,
}

/// The steps for the first form that oneDNN has a fast implementation for.
fn by_either<const N: usize>(
    io: &[&Meta],
    adds: Adds,
    ways: [Operands; N],
    width: Option<Width>,
) -> Result<Option<Steps>> {
    let Some(library) = onednn::library() else { return Ok(None) };
    let problem = Problem::new([io[0], io[1], io[2]], adds);
    if problem.matrices.batch.len() + 2 > MAX_RANK || !problem.is_countable() {
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
    fn new(io: [&Meta; 3], adds: Adds) -> Self {
        let mut matrices = Matrices::new(io);
        if matrices.batch.len() == 1 {
            // Interleaved matrices, such as attention heads, are fast only with four axes.
            matrices.batch.insert(0, Axis { extent: 1, steps: [0; 3] });
        }
        Problem { matrices, adds }
    }

    /// Whether oneDNN can count along each axis: implementations do so in 32 bits, and otherwise
    /// divide by what is left of a number, which may be 0.
    fn is_countable(&self) -> bool {
        let batch = self.matrices.batch.iter().map(|axis| axis.extent);
        batch.chain(self.matrices.size).all(|extent| i32::try_from(extent).is_ok())
    }

    /// Operand `i` with batch extents of 1 where it is broadcast; with `expand`, an operand
    /// broadcast along only some batch dimensions gets their full extents, to be packed. Where both
    /// are broadcast (expanded views), a has the full extent, since one of them must have the
    /// result's.
    fn operand(&self, i: usize, dtype: DType, expand: bool) -> Tensor {
        let Matrices { batch, size: [m, n, k], steps, .. } = &self.matrices;
        let sides = if i == 0 { [*m, *k] } else { [*k, *n] };
        let full = expand && batch.iter().any(|axis| axis.steps[i] != 0);
        let repeats = |axis: &Axis| axis.steps[i] == 0 && !full && !(i == 0 && axis.steps[1] == 0);
        let extents = batch.iter().map(|axis| if repeats(axis) { 1 } else { axis.extent });
        let shape = extents.chain(sides).collect();
        let strides = batch.iter().map(|axis| axis.steps[i]).chain(steps[i]).collect();
        Tensor { place: Location::Input(i), meta: Meta { dtype, shape, strides } }
    }

    fn steps(
        &self,
        library: &'static Library,
        [dtype, compute]: [DType; 2],
        how: Operands,
        width: Option<Width>,
    ) -> Result<Option<Steps>> {
        let Matrices { batch, size: [m, n, k], .. } = &self.matrices;
        if how == Operands::Packed && !batch.is_empty() {
            return Ok(None);
        }
        let copies = how == Operands::RowMajor;
        let [a, b] = [0, 1].map(|i| self.operand(i, dtype, copies));
        let shape = batch.iter().map(|axis| axis.extent).chain([*m, *n]).collect::<Shape>();
        let y = Tensor { place: Location::Output(0), meta: Meta::new(dtype, shape) };
        let tensors = [&a, &b, &y];
        let layouts = tensors.map(|t| layout(&t.meta, compute, copies));
        let row = (self.adds == Adds::Row).then(|| self.row(dtype));
        let product = Product {
            library,
            metas: layouts,
            row: row.as_ref().map(|row| row.meta.clone()),
            adds: self.adds,
        };
        let b = match how {
            Operands::Packed => Some(Descriptor::any(library, compute, &[*k as i64, *n as i64])?),
            _ => None,
        };
        let Some(whole) = product.choice(b)? else { return Ok(None) };
        let packed = match how {
            Operands::Packed if is_plain(library, &whole.weights, compute, [*k, *n])? => {
                return Ok(None);
            }
            Operands::Packed => Some(whole.weights.copy(library)?),
            _ => None,
        };
        let pieces = product.pieces(whole, packed.as_ref(), width)?;
        let mut layouts = product.metas.map(Layout::Strided);
        if let Some(packed) = packed {
            layouts[1] = Layout::Packed(packed, compute);
        }
        let mut tensors: SmallVec<[_; 4]> = tensors.into_iter().zip(layouts).collect();
        if let Some(row) = &row {
            tensors.insert(2, (row, Layout::Strided(row.meta.clone())));
        }
        Steps::new(library, pieces, &tensors, width.unwrap_or(Width::ONE))
    }

    /// The row to be added.
    fn row(&self, dtype: DType) -> Tensor {
        let ones = std::iter::repeat_n(1, self.matrices.batch.len() + 1);
        let shape: Shape = ones.chain([self.matrices.size[1]]).collect();
        Tensor { place: Location::Input(2), meta: Meta::new(dtype, shape) }
    }
}

/// Whether a layout is plain rather than packed. A plain one could at most transpose the matrix,
/// and the product would then round differently.
fn is_plain(
    library: &Library,
    layout: &Descriptor,
    dtype: DType,
    [rows, columns]: [usize; 2],
) -> Result<bool> {
    let dims = [rows as i64, columns as i64];
    for strides in [[dims[1], 1], [1, dims[0]]] {
        if Descriptor::strided(library, dtype, &dims, &strides)?.equals(library, layout) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The tensor's own layout if its strides are suitable, otherwise row-major.
fn layout(meta: &Meta, compute: DType, copy: bool) -> Meta {
    if !copy && meta.dtype == compute && suits(meta) {
        return matrices(meta);
    }
    matrices(&Meta::new(compute, meta.shape.clone()))
}

/// Whether the matrices are row-major or column-major, with gaps between rows or columns allowed.
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

/// The same with unused strides (extents of 1) set such that one of the matrix's two is 1 and the
/// other its leading dimension, and those of batches exceed the matrix.
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
mod tests;
