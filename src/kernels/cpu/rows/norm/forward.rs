//! Layer and root mean square normalisation.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;

use super::{LANES, SHORT, chunks, total, write};
use crate::device::team;
use crate::error::Result;
use crate::kernels::cpu::matmul::tile::Sum;
use crate::kernels::cpu::simd::isa::{self, Body, Isa, Level};
use crate::kernels::cpu::simd::wide::Wide;
use crate::kernels::cpu::strided::access::{Access, Run};
use crate::kernels::cpu::strided::walk::{Dim, dims};
use crate::kernels::cpu::{not_float, space};
use crate::kernels::{Io, Kernel, Width, kernel};
use crate::ops::layer_norm::LayerNorm;
use crate::ops::rms_norm::RmsNorm;
use crate::ops::{Family, Meta};

/// Sums of squares beyond these bounds are added up in float64, as squares may leave the range of
/// float32.
const SAFE: Range<f64> = 1e-30..1e30;

/// Prepares (x, scale, bias) -> (y, mean, inverse); bias may be left out.
///
/// # Errors
/// [`crate::Error::DType`] for types that are not floats.
pub fn layer_norm(op: &LayerNorm, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let bias = (io.len() == 6).then(|| io[2].strides[0]);
    prepare::<true>(op.name(), op.eps.0, [io[0], io[1], io[io.len() - 3]], bias, width)
}

/// Prepares (x, scale) -> (y, inverse).
///
/// # Errors
/// As [`layer_norm`].
pub fn rms_norm(op: &RmsNorm, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    prepare::<false>(op.name(), op.eps.0, [io[0], io[1], io[2]], None, width)
}

/// The kernel; the rows' means are subtracted if `CENTRED`.
fn prepare<const CENTRED: bool>(
    name: &'static str,
    eps: f64,
    [x, scale, y]: [&Meta; 3],
    bias: Option<isize>,
    Width(width): Width,
) -> Result<Arc<dyn Kernel>> {
    let dims = dims([y, x]);
    let (down, across) = (dims[0], dims[1]);
    crate::dispatch!(float x.dtype, T => {
        let steps = (scale.strides[0], bias);
        let rows = Rows::<_, CENTRED> { access: Access::of::<T>(), down, across, steps, eps };
        let room = rows.room();
        Ok(kernel(width * room, move |io| {
            team::ranges(rows.down.extent, 1, width, &|range, seat| {
                let at = io.scratch::<u8>().wrapping_add(seat * room);
                // SAFETY: each seat has its own scratch memory.
                let arrays = unsafe { space::arrays(at, [rows.across.extent; 4]) };
                isa::run(Isa::active(), Part { rows: &rows, io, range, arrays });
            })
        }))
    }, else => not_float(name, x))
}

/// The rows of y and x, with all that is needed to read them.
struct Rows<W, const CENTRED: bool> {
    access: Access<W>,
    /// From row to row, and from column to column.
    down: Dim<2>,
    across: Dim<2>,
    /// Of the scale, and of the bias if there is one.
    steps: (isize, Option<isize>),
    eps: f64,
}

/// One thread's rows, and its arrays of a row's length: the scale, the bias, x and y.
struct Part<'a, W, const CENTRED: bool> {
    rows: &'a Rows<W, CENTRED>,
    io: &'a Io<'a>,
    range: Range<usize>,
    arrays: [&'a mut [W]; 4],
}

impl<W: Wide + Sum, const CENTRED: bool> Body for Part<'_, W, CENTRED> {
    type Output = ();

    #[inline(always)]
    fn run<L: Level>(self) {
        let Part { rows, io, range, arrays: [scale, bias, x, y] } = self;
        let run = |step| Run { start: 0, step, length: rows.across.extent };
        // SAFETY: the vectors have an element for each column.
        unsafe {
            rows.access.copy(io.input(1), run(rows.steps.0), scale);
            match rows.steps.1 {
                Some(step) => rows.access.copy(io.input(2), run(step), bias),
                None => bias.fill(W::ZERO),
            }
        }
        for row in range {
            rows.row(io, row, [&*scale, &*bias], [&mut *x, &mut *y]);
        }
    }
}

impl<W: Wide + Sum, const CENTRED: bool> Rows<W, CENTRED> {
    /// Bytes of a thread's arrays.
    fn room(&self) -> usize {
        space::bytes::<W>([self.across.extent; 4])
    }

    /// One row of y, and its statistics.
    #[inline(always)]
    fn row(&self, io: &Io, row: usize, [scale, bias]: [&[W]; 2], [x, y]: [&mut [W]; 2]) {
        let n = scale.len();
        let run = |t: usize| {
            let start = row as isize * self.down.strides[t];
            Run { start, step: self.across.strides[t], length: n }
        };
        // SAFETY: the row is within x.
        let x = unsafe { self.access.read(io.input(0), run(1), x) };
        let [mean, square] = statistics::<W, CENTRED>(x);
        let (mean, inverse) = (W::of(mean), W::of(1.0 / (square + self.eps).sqrt()));
        let fill = |y: &mut [W]| {
            let (y, x, bias) = (&mut y[..n], &x[..n], &bias[..n]);
            for c in 0..n {
                y[c] = (x[c] - mean) * inverse * scale[c] + bias[c];
            }
        };
        // SAFETY: the row is within y and belongs to one thread; the statistics have an element for
        // each row.
        unsafe {
            write(&self.access, io, &[0], run(0), y, fill);
            if CENTRED {
                io.output::<W>(1).add(row).write(mean);
            }
            io.output::<W>(1 + usize::from(CENTRED)).add(row).write(inverse);
        }
    }
}

/// The mean of a row (0 unless `CENTRED`), and the mean square of what differs from it.
#[inline(always)]
fn statistics<W: Wide, const CENTRED: bool>(x: &[W]) -> [f64; 2] {
    let n = x.len() as f64;
    let about = if CENTRED { W::of(sums(x, W::ZERO)[0] / n) } else { W::ZERO };
    let [first, second] = sums(x, about);
    if !SAFE.contains(&second) {
        return plain::<W, CENTRED>(x);
    }
    if !CENTRED {
        return [0.0, second / n];
    }
    // What the first mean lacks was not squared away (Chan, Golub and LeVeque, 1983).
    let lacking = first / n;
    [about.to_f64() + lacking, (second / n - lacking * lacking).max(0.0)]
}

/// The sums of the differences from a number, and of their squares.
#[inline(always)]
fn sums<W: Wide>(x: &[W], about: W) -> [f64; 2] {
    let mut totals = [0.0; 2];
    for part in x.chunks(SHORT) {
        let mut sums = [[W::ZERO; LANES]; 2];
        let ([full], [last]) = chunks([part]);
        for x in full {
            sums = with(sums, x, about);
        }
        // Filled up with what adds nothing: lanes that are numbered by constants stay in registers.
        let mut filled = [about; LANES];
        filled[..last.len()].copy_from_slice(last);
        let [first, second] = with(sums, &filled, about);
        totals[0] += total(first);
        totals[1] += total(second);
    }
    totals
}

/// The sums with one more number in each lane.
#[inline(always)]
fn with<W: Wide>(mut sums: [[W; LANES]; 2], x: &[W; LANES], about: W) -> [[W; LANES]; 2] {
    let [first, second] = &mut sums;
    for l in 0..LANES {
        let d = x[l] - about;
        first[l] = first[l] + d;
        second[l] = second[l] + d * d;
    }
    sums
}

/// The statistics of a row of very large or very small numbers.
#[inline(never)]
fn plain<W: Wide, const CENTRED: bool>(x: &[W]) -> [f64; 2] {
    let n = x.len() as f64;
    let mean = if CENTRED { x.iter().map(|x| x.to_f64()).sum::<f64>() / n } else { 0.0 };
    let squares = x.iter().map(|x| (x.to_f64() - mean) * (x.to_f64() - mean));
    [mean, squares.sum::<f64>() / n]
}
