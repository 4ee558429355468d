//! Matrix multiplication without a library: the `gemm` crate's tiles on the team. No sum is split
//! between threads, so their number does not change a bit of the result.
#![allow(unsafe_code)]

use std::sync::Arc;

use crate::device::team;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernels::cpu::matmul::panels::{Panel, Panels};
use crate::kernels::cpu::matmul::tile::{Factor, Matrix, Sum, gather_matrix};
use crate::kernels::cpu::space;
use crate::kernels::{Io, Kernel, Width, kernel};
use crate::ops::Meta;

/// How much of a sum is computed at once from copied tiles; bounds the scratch memory.
const DEPTH: usize = 256;

/// The kernel of `c = a b` for `io = [a, b, c]`: any strides, batches that broadcast, every float
/// and integer type. float16 and bfloat16 are accumulated in float32, integers wrap.
///
/// # Errors
/// [`Error::DType`] for bool.
pub fn matmul(io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let panels = Panels::new(io);
    crate::dispatch!(number io[0].dtype, T => Ok(prepare::<T>(panels, false, width)),
        else => Err(Error::dtype("matmul", [io[0].dtype], "a float or integer dtype")))
}

/// The kernel of `c += a b`, for float32 and float64.
///
/// # Errors
/// [`Error::DType`] for other types.
pub fn adding(io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let panels = Panels::new(io);
    match io[0].dtype {
        DType::Float32 => Ok(prepare::<f32>(panels, true, width)),
        DType::Float64 => Ok(prepare::<f64>(panels, true, width)),
        other => Err(Error::dtype("matmul_add", [other], "float32 or float64")),
    }
}

fn prepare<T: Factor>(panels: Panels, adds: bool, width: Width) -> Arc<dyn Kernel> {
    let count = panels.count();
    let parts = width.seats(count);
    let space = if T::IN_PLACE { 0 } else { space::bytes::<T::Sum>(tiles(panels.side)) };
    kernel(parts * space, move |io| {
        team::ranges(count, 1, parts, &|range, seat| {
            for index in range {
                let factors = Factors::<T>::new(&panels.matrices.steps, panels.get(index), io);
                // SAFETY: the metas are those of the tensors; each panel is in one range,
                // and each seat has its own scratch memory.
                unsafe {
                    if T::IN_PLACE {
                        factors.multiply(adds);
                    } else {
                        let scratch = io.scratch::<u8>().add(seat * space);
                        factors.multiply_copies(space::arrays(scratch, tiles(panels.side)));
                    }
                }
            }
        })
    })
}

/// The matrices of one panel.
struct Factors<T> {
    size: [usize; 3],
    a: Matrix<*const T>,
    b: Matrix<*const T>,
    c: Matrix<*mut T>,
}

impl<T: Factor> Factors<T> {
    fn new(steps: &[[isize; 2]; 3], panel: Panel, io: &Io) -> Self {
        let factor = |i: usize| {
            let [row, column] = steps[i];
            Matrix { at: io.input::<T>(i).wrapping_offset(panel.start[i]), row, column }
        };
        let [row, column] = steps[2];
        let at = io.output::<T>(0).wrapping_offset(panel.start[2]);
        Factors { size: panel.size, a: factor(0), b: factor(1), c: Matrix { at, row, column } }
    }

    /// Computes the panel, or `adds` to it, directly from the operands, which must be of the type
    /// of the sums.
    ///
    /// # Safety
    /// All elements can be accessed, and nothing else accesses the panel.
    unsafe fn multiply(self, adds: bool) {
        debug_assert!(T::IN_PLACE);
        // SAFETY: by the caller's promise.
        unsafe {
            T::Sum::multiply(self.size, self.c.cast(), adds, self.a.cast(), self.b.cast());
        }
    }

    /// Computes the panel from copies of the operands in the type of the sums.
    ///
    /// # Safety
    /// As for [`Factors::multiply`]; the arrays are as long as [`tiles`] says.
    unsafe fn multiply_copies(self, [a, b, sums]: [&mut [T::Sum]; 3]) {
        let [m, n, k] = self.size;
        sums[..m * n].fill(T::Sum::default());
        let c = Matrix::of_mut(sums, n);
        for done in (0..k).step_by(DEPTH) {
            let depth = DEPTH.min(k - done);
            let (a, b) = (&mut a[..m * depth], &mut b[..depth * n]);
            // SAFETY: by the caller's promise; the tiles are long enough.
            unsafe {
                gather_matrix(self.a.from(0, done), depth, a);
                gather_matrix(self.b.from(done, 0), n, b);
                T::Sum::multiply([m, n, depth], c, true, Matrix::of(a, depth), Matrix::of(b, n));
            }
        }
        for (i, sums) in sums[..m * n].chunks_exact(n).enumerate() {
            // SAFETY: by the caller's promise.
            unsafe { T::scatter(sums, self.c.from(i, 0).at, self.c.column) };
        }
    }
}

/// Elements of a part's scratch memory: a tile of each operand and of the result.
fn tiles([rows, columns]: [usize; 2]) -> [usize; 3] {
    [rows * DEPTH, DEPTH * columns, rows * columns]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::testing::{Random, Tensor, assert_near, run, tolerance};
    use crate::shape::Shape;

    const FLOATS: [DType; 4] = [DType::Float32, DType::Float64, DType::Float16, DType::BFloat16];

    fn product(a: &Tensor, b: &Tensor, threads: usize) -> Tensor {
        let split = |m: &Meta| m.shape.rank() - 2;
        let (x, y) = (&a.meta.shape, &b.meta.shape);
        let batch =
            Shape::broadcast("", &x[..split(&a.meta)].into(), &y[..split(&b.meta)].into()).unwrap();
        let tail = [x[x.rank() - 2], y[y.rank() - 1]];
        let shape: Shape = batch.iter().copied().chain(tail).collect();
        let c = Meta::new(a.meta.dtype, shape);
        let kernel = matmul(&[&a.meta, &b.meta, &c], Width(threads)).unwrap();
        run(&*kernel, &[a, b], &[c]).unwrap().remove(0)
    }

    fn reference(a: &Tensor, b: &Tensor, c: &Meta) -> Vec<f64> {
        let rank = c.shape.rank();
        let k = a.meta.shape[a.meta.shape.rank() - 1];
        let (x, y) = (a.values(), b.values());
        let at = |meta: &Meta, index: &[usize]| {
            let skip = index.len() - meta.shape.rank();
            meta.shape.iter().zip(&index[skip..]).fold(0, |p, (&e, &i)| p * e + i.min(e - 1))
        };
        let element = |flat: usize| {
            let mut index = vec![0; rank];
            let mut rest = flat;
            for d in (0..rank).rev() {
                (index[d], rest) = (rest % c.shape[d], rest / c.shape[d]);
            }
            let (mut left, mut right) = (index.clone(), index);
            let term = |l: usize| {
                (left[rank - 1], right[rank - 2]) = (l, l);
                x[at(&a.meta, &left)] * y[at(&b.meta, &right)]
            };
            (0..k).map(term).sum()
        };
        (0..c.numel()).map(element).collect()
    }

    fn check(random: &mut Random, dtype: DType, a: &[usize], b: &[usize]) {
        let (a, b) = (random.layout(dtype, a), random.layout(dtype, b));
        let (a, b) = (random.tensor(a), random.tensor(b));
        let c = product(&a, &b, 3);
        let what = format!("{:?} x {:?}", a.meta, b.meta);
        let wrap = |v: f64| match dtype {
            DType::Int8 => v as i64 as i8 as f64,
            DType::UInt8 => v as i64 as u8 as f64,
            _ => v,
        };
        let want: Vec<f64> = reference(&a, &b, &c.meta).into_iter().map(wrap).collect();
        assert_near(&c.values(), &want, 4.0 * tolerance(dtype), &what);
    }

    #[test]
    fn any_layout_and_batch_as_plain_loops() {
        let mut random = Random::new(1);
        let all = FLOATS.into_iter().chain(DType::COMPUTED.into_iter().filter(|d| d.is_int()));
        for dtype in all {
            for _ in 0..12 {
                let [m, n, k] = [(); 3].map(|()| random.below(9) * random.below(9));
                let (x, y) = (1 + random.below(3), 1 + random.below(3));
                check(&mut random, dtype, &[m, k], &[k, n]);
                check(&mut random, dtype, &[x, y, m, k], &[k, n]);
                check(&mut random, dtype, &[x, 1, m, k], &[y, k, n]);
                check(&mut random, dtype, &[m, k], &[1, y, k, n]);
            }
            check(&mut random, dtype, &[200, 300], &[300, 210]);
        }
    }

    #[test]
    fn floats_are_multiplied_where_they_lie() {
        let mut random = Random::new(4);
        for dtype in [DType::Float32, DType::Float64] {
            for _ in 0..20 {
                let a = random.layout(dtype, &[2, 3, 17, 9]);
                let b = random.layout(dtype, &[3, 9, 12]);
                let c = Meta::new(dtype, [2, 3, 17, 12]);
                assert_eq!(matmul(&[&a, &b, &c], Width(2)).unwrap().scratch(), 0);
            }
        }
    }

    #[test]
    fn an_empty_sum_is_zero() {
        for dtype in [DType::Float32, DType::BFloat16, DType::Int32] {
            let factor = |shape: [usize; 2]| Tensor::new(Meta::new(dtype, shape), &[]);
            let c = product(&factor([3, 0]), &factor([0, 2]), 2);
            assert_eq!(c.values(), [0.0; 6]);
            assert!(product(&factor([0, 3]), &factor([3, 0]), 2).values().is_empty());
        }
    }

    #[test]
    fn expanded_operands() {
        let mut random = Random::new(2);
        for strides in [[0isize, 1], [1, 0], [0, 0]] {
            let meta = Meta { strides: strides[..].into(), ..Meta::new(DType::Float32, [5, 5]) };
            let (a, b) = (random.tensor(meta.clone()), random.tensor(meta));
            let c = product(&a, &b, 1);
            assert_near(&c.values(), &reference(&a, &b, &c.meta), 1e-5, "expanded");
        }
    }

    #[test]
    fn the_number_of_threads_changes_nothing() {
        let mut random = Random::new(3);
        for dtype in FLOATS {
            let a = random.layout(dtype, &[2, 401, 70]);
            let a = random.tensor(a);
            let b = random.tensor(Meta::new(dtype, [2, 70, 390]));
            let bits = |threads| product(&a, &b, threads).values();
            assert_eq!(bits(1), bits(2));
            assert_eq!(bits(1), bits(7));
        }
    }
}
