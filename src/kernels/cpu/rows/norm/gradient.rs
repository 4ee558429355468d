//! The gradients of layer and root mean square normalisation. Each row is read from memory once: its
//! part of the parameters' gradients is added up while it is in the cache.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;

use super::{LANES, SHORT, chunks, total, write};
use crate::device::team;
use crate::error::Result;
use crate::kernels::cpu::matmul::tile::Sum;
use crate::kernels::cpu::simd::isa::{Body, Isa, Level, Reach};
use crate::kernels::cpu::simd::wide::Wide;
use crate::kernels::cpu::strided::access::{Access, Run};
use crate::kernels::cpu::strided::walk::{Dim, dims};
use crate::kernels::cpu::{not_float, space};
use crate::kernels::{Io, Kernel, Width, kernel};
use crate::ops::layer_norm::LayerNormGrad;
use crate::ops::rms_norm::RmsNormGrad;
use crate::ops::{Family, Meta};

/// So many rows of a column are added up in the type of the computation; such sums in float64.
const FEW: usize = 64;
/// Rows are added up in blocks, which depend on their number alone: at most so many of them, of at
/// least so many rows.
const BLOCKS: usize = 64;
const LEAST: usize = 8;

/// Prepares (dy, x, scale, mean, inverse) -> (dx, dscale, dbias).
///
/// # Errors
/// [`crate::Error::DType`] for types that are not floats.
pub fn layer_norm_grad(op: &LayerNormGrad, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    prepare::<true>(op.name(), io, width)
}

/// Prepares (dy, x, scale, inverse) -> (dx, dscale).
///
/// # Errors
/// As [`layer_norm_grad`].
pub fn rms_norm_grad(op: &RmsNormGrad, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    prepare::<false>(op.name(), io, width)
}

/// The kernel; the rows' means were subtracted if `CENTRED`.
fn prepare<const CENTRED: bool>(
    name: &'static str,
    io: &[&Meta],
    Width(width): Width,
) -> Result<Arc<dyn Kernel>> {
    crate::dispatch!(float io[0].dtype, T => {
        let rows = Rows::<_, CENTRED>::new(io, Access::of::<T>());
        Ok(kernel(rows.scratch(width), move |io| rows.run(io, width)))
    }, else => not_float(name, io[0]))
}

/// The rows of dx, dy and x, with all that is needed to read them.
struct Rows<W, const CENTRED: bool> {
    access: Access<W>,
    /// From row to row, and from column to column.
    down: Dim<3>,
    across: Dim<3>,
    scale_step: isize,
    /// Of the statistics.
    steps: [isize; 2],
    /// The number of rows of a block.
    block: usize,
}

/// A thread's arrays, of a row's length: the scale, dy, x, dx, and sums over few rows.
type Arrays<'a, W> = [&'a mut [W]; 6];

impl<W: Wide + Sum, const CENTRED: bool> Rows<W, CENTRED> {
    fn new(io: &[&Meta], access: Access<W>) -> Self {
        let statistics = if CENTRED { 3..5 } else { 3..4 };
        let dx = io[statistics.end];
        let dims = dims([dx, io[0], io[1]]);
        let block = dims[0].extent.div_ceil(BLOCKS).max(LEAST);
        Rows {
            access,
            down: dims[0],
            across: dims[1],
            scale_step: io[2].strides[0],
            steps: [io[3].strides[0], io[statistics.end - 1].strides[0]],
            block,
        }
    }

    fn columns(&self) -> usize {
        self.across.extent
    }

    fn blocks(&self) -> usize {
        self.down.extent.div_ceil(self.block)
    }

    /// Bytes of the sums of all blocks, and of a thread's arrays.
    fn rooms(&self) -> [usize; 2] {
        let sums = space::bytes::<f64>([2 * self.blocks() * self.columns()]);
        [sums, space::bytes::<W>([self.columns(); 6])]
    }

    fn scratch(&self, width: usize) -> usize {
        let [sums, arrays] = self.rooms();
        sums + width * arrays
    }

    fn run(&self, io: &Io, width: usize) -> Result<()> {
        team::ranges(self.blocks(), 1, width, &|range, seat| {
            let [sums, room] = self.rooms();
            let at = io.scratch::<u8>().wrapping_add(sums + seat * room);
            // SAFETY: each seat has its own scratch memory.
            let arrays = unsafe { space::arrays(at, [self.columns(); 6]) };
            W::Reach::run(Isa::active(), Part { rows: self, io, range, arrays });
        })?;
        team::ranges(self.columns(), 64, width, &|range, _| {
            self.finish(io, range);
        })
    }

    /// The sums of a block: of dscale, then of dbias.
    ///
    /// # Safety
    /// Nothing else uses them.
    #[inline(always)]
    #[allow(clippy::mut_from_ref)] // in scratch memory
    unsafe fn sums<'a>(&self, io: &'a Io, block: usize) -> [&'a mut [f64]; 2] {
        let n = self.columns();
        // SAFETY: the scratch memory begins with them, and by the caller's promise.
        let both = unsafe {
            let first = io.scratch::<f64>().add(2 * block * n);
            std::slice::from_raw_parts_mut(first, 2 * n)
        };
        both.split_at_mut(n).into()
    }

    /// Adds up the sums of all blocks for some columns, in order.
    fn finish(&self, io: &Io, range: Range<usize>) {
        for i in 0..if CENTRED { 2 } else { 1 } {
            for column in range.clone() {
                let total: f64 = (0..self.blocks())
                    // SAFETY: the blocks are done; the column belongs to one thread.
                    .map(|b| unsafe {
                        *io.scratch::<f64>().add((2 * b + i) * self.columns() + column)
                    })
                    .sum();
                let run = Run { start: column as isize, step: 1, length: 1 };
                // SAFETY: the result has an element for each column.
                unsafe { self.access.store(&[W::of(total)], io.output(1 + i), run) };
            }
        }
    }
}

/// One thread's blocks.
struct Part<'a, W, const CENTRED: bool> {
    rows: &'a Rows<W, CENTRED>,
    io: &'a Io<'a>,
    range: Range<usize>,
    arrays: Arrays<'a, W>,
}

impl<W: Wide + Sum, const CENTRED: bool> Body for Part<'_, W, CENTRED> {
    type Output = ();

    #[inline(always)]
    fn run<L: Level>(self) {
        let Part { rows, io, range, arrays: [scale, dy, x, dx, to_scale, to_bias] } = self;
        let run = Run { start: 0, step: rows.scale_step, length: scale.len() };
        // SAFETY: the scale has so many elements.
        unsafe { rows.access.copy(io.input(2), run, scale) };
        for block in range {
            // SAFETY: the block belongs to this thread.
            let sums = unsafe { rows.sums(io, block) };
            sums.into_iter().for_each(|sums| sums.fill(0.0));
            let all = block * rows.block..rows.down.extent.min((block + 1) * rows.block);
            for few in all.clone().step_by(FEW) {
                to_scale.fill(W::ZERO);
                to_bias.fill(W::ZERO);
                for row in few..all.end.min(few + FEW) {
                    rows.row(
                        io,
                        row,
                        scale,
                        [&mut *dy, &mut *x, &mut *dx],
                        [&mut *to_scale, &mut *to_bias],
                    );
                }
                // SAFETY: the block belongs to this thread.
                let sums = unsafe { rows.sums(io, block) };
                for (sums, few) in sums.into_iter().zip([&*to_scale, &*to_bias]) {
                    sums.iter_mut().zip(few).for_each(|(sum, few)| *sum += few.to_f64());
                }
            }
        }
    }
}

impl<W: Wide + Sum, const CENTRED: bool> Rows<W, CENTRED> {
    /// One row of dx, and its terms of dscale and dbias.
    #[inline(always)]
    fn row(
        &self,
        io: &Io,
        row: usize,
        scale: &[W],
        [dy, x, dx]: [&mut [W]; 3],
        [to_scale, to_bias]: [&mut [W]; 2],
    ) {
        let n = scale.len();
        let run = |t: usize| {
            let start = row as isize * self.down.strides[t];
            Run { start, step: self.across.strides[t], length: n }
        };
        // SAFETY: the rows are within dy and x.
        let (dy, x) = unsafe {
            (self.access.read(io.input(0), run(1), dy), self.access.read(io.input(1), run(2), x))
        };
        let [mean, inverse] = self.statistics(io, row);
        let mut totals = [0.0; 2];
        for start in (0..n).step_by(SHORT) {
            let part = start..n.min(start + SHORT);
            let [dy, x, scale] = [dy, x, scale].map(|all| &all[part.clone()]);
            let to = [&mut to_scale[part.clone()], &mut to_bias[part.clone()]];
            let found = terms::<W, CENTRED>([dy, x, scale], [mean, inverse], to);
            (0..2).for_each(|i| totals[i] += found[i]);
        }
        let [of_dy, of_product] = totals.map(|total| W::of(total / n as f64));
        let of_dy = if CENTRED { of_dy } else { W::ZERO };
        let (dy, x) = (&dy[..n], &x[..n]);
        let fill = |dx: &mut [W]| {
            for (c, dx) in dx[..n].iter_mut().enumerate() {
                *dx = (dy[c] * scale[c] - of_dy - (x[c] - mean) * inverse * of_product) * inverse;
            }
        };
        // SAFETY: the row is within dx, and belongs to one thread.
        unsafe { write(&self.access, io, &[0, 1], run(0), dx, fill) };
    }

    /// Mean (0 unless `CENTRED`) and inverse of a row, from the forward pass.
    #[inline(always)]
    fn statistics(&self, io: &Io, row: usize) -> [W; 2] {
        let at = |i: usize, step: isize| {
            // SAFETY: the statistics have an element for each row.
            unsafe { *io.input::<W>(i).offset(row as isize * step) }
        };
        let mean = if CENTRED { at(3, self.steps[0]) } else { W::ZERO };
        [mean, at(3 + usize::from(CENTRED), self.steps[1])]
    }
}

/// The sums of dy scale and of its product with the normalised x, over part of a row; adds its terms
/// of dscale and dbias.
#[inline(always)]
fn terms<W: Wide, const CENTRED: bool>(
    [dy, x, scale]: [&[W]; 3],
    [mean, inverse]: [W; 2],
    [to_scale, to_bias]: [&mut [W]; 2],
) -> [f64; 2] {
    let (mut of_dy, mut of_product) = ([W::ZERO; LANES], [W::ZERO; LANES]);
    let ([dy, x, scale], last) = chunks([dy, x, scale]);
    let ((to_scale, scale_end), (to_bias, bias_end)) =
        (to_scale.as_chunks_mut::<LANES>(), to_bias.as_chunks_mut::<LANES>());
    for c in 0..dy.len() {
        // Copies, so that the compiler need not ask whether they overlap with what is written.
        let (dy, x, scale) = (dy[c], x[c], scale[c]);
        let (mut products, mut biases) = (to_scale[c], to_bias[c]);
        for l in 0..LANES {
            let (normal, scaled) = ((x[l] - mean) * inverse, dy[l] * scale[l]);
            of_product[l] = of_product[l] + scaled * normal;
            of_dy[l] = of_dy[l] + scaled;
            products[l] = products[l] + dy[l] * normal;
            biases[l] = biases[l] + dy[l];
        }
        to_scale[c] = products;
        if CENTRED {
            to_bias[c] = biases;
        }
    }
    for l in 0..last[0].len() {
        let [dy, x, scale] = last.map(|last| last[l]);
        let (normal, scaled) = ((x - mean) * inverse, dy * scale);
        of_product[l] = of_product[l] + scaled * normal;
        of_dy[l] = of_dy[l] + scaled;
        scale_end[l] = scale_end[l] + dy * normal;
        bias_end[l] = bias_end[l] + dy;
    }
    [of_dy, of_product].map(total)
}
