//! Products of fixed sizes that kernels compute within a chunk, on one thread.
#![allow(unsafe_code)]

use std::marker::PhantomData;

use crate::device::onednn::{self, Addend, Descriptor, Primitive};
use crate::dtype::DType;
use crate::error::Result;
use crate::kernels::cpu::matmul::product::TINY;
use crate::kernels::cpu::matmul::tile::{Matrix, Sum};
use crate::ops;

/// `c = a b`, or `c += a b`, for m x k and k x n matrices of given strides.
pub struct Small<W> {
    size: [usize; 3],
    /// Strides from row to row and from column to column of a, b and c.
    steps: [[isize; 2]; 3],
    adds: bool,
    library: Option<Primitive>,
    of: PhantomData<W>,
}

impl<W: Sum> Small<W> {
    /// Prepares it; `size` is m, n and k.
    ///
    /// # Errors
    /// [`crate::Error::Library`].
    pub fn new(size: [usize; 3], steps: [[isize; 2]; 3], adds: bool) -> Result<Self> {
        let mut product = Small { size, steps, adds, library: None, of: PhantomData };
        if W::DTYPE == DType::Float32 && ops::product(&size) > TINY {
            product.library = product.by_library()?;
        }
        Ok(product)
    }

    fn by_library(&self) -> Result<Option<Primitive>> {
        let (Some(library), [m, n, k]) = (onednn::library(), self.size) else { return Ok(None) };
        let describe = |i: usize, sides: [usize; 2]| {
            let (dims, steps) = (sides.map(|n| n as i64), self.steps[i].map(|step| step as i64));
            Descriptor::strided(library, W::DTYPE, &dims, &steps)
        };
        let tensors = [describe(0, [m, k])?, describe(1, [k, n])?, describe(2, [m, n])?];
        let addend = if self.adds { Addend::Result } else { Addend::Nothing };
        let made = onednn::matmul(library, tensors, addend)?;
        made.map(|choice| choice.build()).transpose()
    }

    /// Bytes of scratch memory that it needs.
    pub fn scratch(&self) -> usize {
        self.library.as_ref().map_or(0, Primitive::scratch)
    }

    /// Computes it; `scratch` is aligned to 64.
    ///
    /// # Errors
    /// [`crate::Error::Library`].
    ///
    /// # Safety
    /// The addresses are those of matrices of the given sizes and strides, `scratch` that of
    /// [`Small::scratch`] bytes; nothing else accesses what is written.
    pub unsafe fn run(&self, [a, b]: [*const W; 2], c: *mut W, scratch: *mut u8) -> Result<()> {
        if let Some(primitive) = &self.library {
            let places = [a.cast::<u8>().cast_mut(), b.cast::<u8>().cast_mut(), c.cast()];
            // SAFETY: by the caller's promise.
            return unsafe { primitive.run(&places, scratch) };
        }
        let at = |i: usize, at| Matrix { at, row: self.steps[i][0], column: self.steps[i][1] };
        let [row, column] = self.steps[2];
        let c = Matrix { at: c, row, column };
        // SAFETY: by the caller's promise.
        unsafe { self.by_tiles(c, at(0, a), at(1, b)) };
        Ok(())
    }

    /// # Safety
    /// As [`Small::run`].
    unsafe fn by_tiles(&self, c: Matrix<*mut W>, a: Matrix<*const W>, b: Matrix<*const W>) {
        let [m, n, k] = self.size;
        if k > 0 {
            // SAFETY: by the caller's promise.
            return unsafe { W::multiply([m, n, k], c, self.adds, a, b) };
        }
        let all = (0..m).flat_map(|i| (0..n).map(move |j| (i, j))).filter(|_| !self.adds);
        // SAFETY: by the caller's promise; an empty sum is 0.
        all.for_each(|(i, j)| unsafe { *c.from(i, j).at = W::default() });
    }
}
