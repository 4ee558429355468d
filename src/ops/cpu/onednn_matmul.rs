//! Matrix products by oneDNN.

use smallvec::SmallVec;

use super::onednn_steps::{
    Layout, Place, Steps, Tensor, compute_types, describe, is_disjoint, settled,
};
use crate::device::onednn::{self, Library, api::MAX_RANK};
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
}

/// The product of `io` = a, b, y (y row-major, nothing empty); `None` where oneDNN is missing or
/// has no fast implementation.
///
/// # Errors
/// [`crate::Error::Library`].
pub fn matmul(io: &[&Meta], width: Width) -> Result<Option<Steps>> {
    let Some(library) = onednn::library() else { return Ok(None) };
    let problem = Problem::new(io[0], io[1], io[2]);
    if problem.batch.len() + 2 > MAX_RANK {
        return Ok(None);
    }
    for &compute in compute_types(io[0].dtype) {
        // As the operands lie first, then packed.
        for pack in [false, true] {
            let steps = problem.steps(library, [io[0].dtype, compute], pack, width)?;
            if steps.is_some() {
                return Ok(steps);
            }
        }
    }
    Ok(None)
}

impl Problem {
    fn new(a: &Meta, b: &Meta, y: &Meta) -> Self {
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
    /// broadcast along some batch dimensions only has their full extents, to be packed.
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
        let extents = self.batch.iter().map(|x| if stride(x) == 0 && !full { 1 } else { x.0 });
        let shape = extents.chain([rows, cols]).collect();
        let strides = self.batch.iter().map(stride).chain(matrix).collect();
        Tensor { place: Place::Input(i), meta: Meta { dtype, shape, strides } }
    }

    fn steps(
        &self,
        library: &'static Library,
        [dtype, compute]: [DType; 2],
        pack: bool,
        width: Width,
    ) -> Result<Option<Steps>> {
        let [m, n, k] = self.sizes;
        let a = self.operand(0, dtype, [m, k], self.a, pack);
        let b = self.operand(1, dtype, [k, n], self.b, pack);
        let shape = self.batch.iter().map(|x| x.0).chain([m, n]).collect::<Shape>();
        let y = Tensor { place: Place::Output(0), meta: Meta::new(dtype, shape) };
        let tensors = [&a, &b, &y];
        let layouts = tensors.map(|t| layout(&t.meta, compute, pack));
        let [a, b, y] = &layouts;
        let (a, b, y) = (describe(library, a)?, describe(library, b)?, describe(library, y)?);
        let (Some(a), Some(b), Some(y)) = (a, b, y) else { return Ok(None) };
        let product = onednn::matmul(library, [a, b, y], width.0)?;
        let Some(product) = product else { return Ok(None) };
        let layouts = layouts.into_iter().map(Layout::Strided);
        let tensors: SmallVec<[_; 3]> = tensors.into_iter().zip(layouts).collect();
        Steps::new(library, product, &tensors, width)
    }
}

/// The tensor as it is where its strides suit, else row-major.
fn layout(meta: &Meta, compute: DType, pack: bool) -> Meta {
    if !pack && meta.dtype == compute && suits(meta) {
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
mod tests {
    use super::*;
    use crate::ops::cpu::testing::{Tensor, assert_near, run, tolerance};
    use crate::ops::{Family, gemm::Matmul};

    /// y = a b in float64, row-major, batches broadcast.
    fn naive(a: &Tensor, b: &Tensor, y: &Meta) -> Vec<f64> {
        let (x, w) = (a.values(), b.values());
        let rank = y.shape.rank();
        let [m, n] = [y.shape[rank - 2], y.shape[rank - 1]];
        let k = *a.meta.shape.last().unwrap();
        let batch = |t: &Meta, index: usize| {
            let (mut rest, mut at, mut step) = (index, 0, 1);
            for d in (0..rank - 2).rev() {
                let place = rest % y.shape[d];
                rest /= y.shape[d];
                if let Some(own) = (d + t.shape.rank()).checked_sub(rank) {
                    at += if t.shape[own] == 1 { 0 } else { place * step };
                    step *= t.shape[own];
                }
            }
            at
        };
        let mut out = Vec::new();
        for index in 0..y.shape[..rank - 2].iter().product() {
            let (at, bt) = (batch(&a.meta, index) * m * k, batch(&b.meta, index) * k * n);
            for i in 0..m {
                for j in 0..n {
                    out.push((0..k).map(|l| x[at + i * k + l] * w[bt + l * n + j]).sum());
                }
            }
        }
        out
    }

    /// Values that half types hold exactly.
    fn filled(meta: Meta, seed: usize) -> Tensor {
        let value = |i: usize| ((i * 37 + seed * 11) % 41) as f64 / 32.0 - 0.6;
        let values: Vec<f64> = (0..meta.numel()).map(value).collect();
        Tensor::new(meta, &values)
    }

    /// Compares with the naive product; says how many steps that took.
    fn check(a: Meta, b: Meta, width: usize) -> usize {
        let y = Matmul.infer(&[&a, &b]).unwrap().remove(0);
        let (a, b) = (filled(a, 1), filled(b, 2));
        let io = [&a.meta, &b.meta, &y];
        let Some(kernel) = matmul(&io, Width(width)).unwrap() else {
            assert!(!onednn::is_available(), "not offered for {io:?}");
            eprintln!("skipped: oneDNN is missing");
            return 1;
        };
        let got = run(&kernel, &[&a, &b], std::slice::from_ref(&y)).unwrap();
        let k = *a.meta.shape.last().unwrap() as f64;
        let near = tolerance(y.dtype) * k.sqrt();
        assert_near(&got[0].values(), &naive(&a, &b, &y), near, &format!("{io:?}"));
        kernel.len()
    }

    fn transposed(dtype: DType, [rows, cols]: [usize; 2]) -> Meta {
        let strides = smallvec::smallvec![1, rows as isize];
        Meta { strides, ..Meta::new(dtype, [rows, cols]) }
    }

    const TYPES: [DType; 3] = [DType::Float32, DType::BFloat16, DType::Float16];

    #[test]
    fn matrices_and_their_transposes_need_no_copy() {
        let sizes = [[64, 256, 784], [1, 10, 7], [10, 1, 7], [1, 1, 1], [5, 1, 1], [3, 5, 1]];
        for (dtype, [m, n, k]) in TYPES.into_iter().flat_map(|t| sizes.map(|s| (t, s))) {
            let (a, b) = (Meta::new(dtype, [m, k]), Meta::new(dtype, [k, n]));
            let (at, bt) = (transposed(dtype, [m, k]), transposed(dtype, [k, n]));
            for (a, b) in [(&a, &b), (&at, &b), (&a, &bt), (&at, &bt)] {
                assert_eq!(check(a.clone(), b.clone(), 2), 1, "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn batches_broadcast() {
        let shapes: [[&[usize]; 2]; 6] = [
            [&[4, 3, 17, 33], &[4, 3, 33, 5]],
            [&[4, 3, 17, 33], &[3, 33, 5]],
            [&[4, 1, 17, 33], &[3, 33, 5]],
            [&[17, 33], &[4, 3, 33, 5]],
            [&[4, 3, 17, 33], &[33, 5]],
            [&[6, 1, 33], &[1, 33, 5]],
        ];
        for [a, b] in shapes {
            check(Meta::new(DType::Float32, a), Meta::new(DType::Float32, b), 2);
        }
    }
}
