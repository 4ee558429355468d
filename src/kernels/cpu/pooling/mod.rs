//! Pooling: windows that slide over images, computed row by row. Every row of a result is computed
//! by one thread, so the number of threads does not change a bit of it.
#![allow(unsafe_code)]

mod pools;
mod rows;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

use super::not_float;
use super::space;
use super::volume;
use crate::device::team;
use crate::dtype::Element;
use crate::error::{Error, Result};
use crate::kernels::cpu::matmul::tile::Sum;
use crate::kernels::cpu::simd::isa::{Body, Isa, Level, Reach};
use crate::kernels::cpu::simd::number::Value;
use crate::kernels::cpu::strided::access::Access;
use crate::kernels::cpu::strided::scan::Scan;
use crate::kernels::{Io, Kernel, Width, checked, kernel};
use crate::ops::geometry::spatial;
use crate::ops::pooling::{AvgPool, AvgPoolGrad, MaxPool, MaxPoolGrad};
use crate::ops::{Family, Meta};
use pools::{Average, AverageGrad, Counts, Max, MaxGrad, Pool};
use rows::{Row, Rows, Windows};

/// The kernel for `io` = x, y.
///
/// # Errors
/// [`Error::DType`] for types that are not floats.
pub fn average(op: &AvgPool, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let windows = Windows::new(&op.window, op.name(), spatial(&io[0].shape))?;
    let (split, pool) =
        (RowSplit::new(windows, io[0], io[1], width), Average(Counts::new(&windows, &op.mean)));
    crate::dispatch!(float io[0].dtype, T => Ok(prepare(split, Access::of::<T>(), pool)),
        else => not_float(op.name(), io[0]))
}

/// The kernel for `io` = dy, dx.
///
/// # Errors
/// As [`average`].
pub fn average_grad(op: &AvgPoolGrad, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let windows = Windows::new(&op.window, op.name(), &op.size)?;
    let (split, pool) =
        (RowSplit::new(windows, io[0], io[1], width), AverageGrad(Counts::new(&windows, &op.mean)));
    crate::dispatch!(float io[0].dtype, T => Ok(prepare(split, Access::of::<T>(), pool)),
        else => not_float(op.name(), io[0]))
}

/// The kernel for `io` = x, y, index. NaN compares greater than everything; the first of equals
/// wins.
///
/// # Errors
/// [`Error::DType`] for bool.
pub fn max(op: &MaxPool, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let windows = Windows::new(&op.window, op.name(), spatial(&io[0].shape))?;
    let split = RowSplit::new(windows, io[0], io[1], width);
    let pool = Max(Rows::new(io[2], split.all_channels));
    crate::dispatch!(number io[0].dtype, T => Ok(prepare(split, Access::of::<T>(), pool)),
        else => Err(Error::dtype(op.name(), [io[0].dtype], "a float or integer dtype")))
}

/// The kernel for `io` = dy, index, dx.
///
/// # Errors
/// [`Error::DType`] for types that are not floats.
pub fn max_grad(op: &MaxPoolGrad, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let windows = Windows::new(&op.window, op.name(), &op.size)?;
    let split = RowSplit::new(windows, io[0], io[2], width);
    let pool = MaxGrad(Rows::new(io[1], split.all_channels));
    let kernel = crate::dispatch!(float io[0].dtype, T => prepare(split, Access::of::<T>(), pool),
        else => return not_float(op.name(), io[0]));
    let (scan, taps, name) = (Scan::new(1, io[1], width), op.window.taps(), op.name());
    Ok(crate::dispatch!(int io[1].dtype,
        T => checked(move |io| check_index(name, scan.largest(io, |i: T| i.to_i64() as u32)?, taps), kernel),
        else => return Err(Error::dtype(op.name(), [io[1].dtype], "an integer index"))))
}

/// Rejects positions outside the window, whose gradients would be lost. Negative ones compare as
/// the largest.
fn check_index(op: &'static str, largest: u32, taps: usize) -> Result<()> {
    let (op, index) = (op.into(), largest as i32 as i64);
    crate::ensure!((largest as usize) < taps, Error::Index { op, index, size: taps });
    Ok(())
}

/// How the rows of a result are distributed.
#[derive(Clone, Debug)]
struct RowSplit {
    windows: Windows,
    /// Whether rows span all channels.
    all_channels: bool,
    from: Rows,
    to: Rows,
    /// The number of rows of the result: layers, lines of each, and rows of all images.
    layers: usize,
    lines: usize,
    rows: usize,
    parts: usize,
}

impl RowSplit {
    fn new(windows: Windows, from: &Meta, to: &Meta, width: Width) -> RowSplit {
        let all_channels = Rows::prefer_channels(from);
        let (from, rows) = (Rows::new(from, all_channels), Rows::new(to, all_channels));
        let [layers, lines, _] = volume::extents(to);
        let count = if rows.len() == 0 { 0 } else { rows.planes(to.shape[0]) * layers * lines };
        let parts = width.seats(count);
        RowSplit { windows, all_channels, from, to: rows, layers, lines, rows: count, parts }
    }

    /// Row `row` of the result.
    fn row(&self, row: usize) -> Row {
        let (line, above) = (row % self.lines, row / self.lines);
        Row { image: above / self.layers, at: [above % self.layers, line] }
    }

    /// The rows of the image that a row of windows reads, each with the first of its taps.
    #[inline(always)]
    fn seen_by(&self, row: Row) -> impl Iterator<Item = (usize, Row)> {
        let (windows, [layer, line]) = (&self.windows, row.at);
        let [_, height, width] = windows.kernel;
        windows.taps(0, layer).flat_map(move |inward| {
            windows.taps(1, line).map(move |down| {
                let at = [windows.position(0, layer, inward), windows.position(1, line, down)];
                ((inward * height + down) * width, row.moved(at))
            })
        })
    }

    /// The rows of windows that read a row of the image, each with the first of the taps.
    #[inline(always)]
    fn seeing(&self, row: Row) -> impl Iterator<Item = (usize, Row)> {
        let (windows, [layer, line]) = (&self.windows, row.at);
        let [_, height, width] = windows.kernel;
        windows.reading(0, layer).flat_map(move |(z, inward)| {
            let taps = move |down: usize| (inward * height + down) * width;
            windows.reading(1, line).map(move |(y, down)| (taps(down), row.moved([z, y])))
        })
    }
}

/// One thread's buffers: a row of the input, one of the result, and what the pool asks for.
struct Buffers<'a, A> {
    from: &'a mut [A],
    to: &'a mut [A],
    partial: &'a mut [A],
    index: &'a mut [i32],
}

fn prepare<A: Sum + Value>(
    split: RowSplit,
    access: Access<A>,
    pool: impl Pool<A>,
) -> Arc<dyn Kernel> {
    let [partial, index] = pool.room(&split);
    let lengths = [split.from.len(), split.to.len(), partial];
    let floats = space::bytes::<A>(lengths);
    let own = floats + space::bytes::<i32>([index]);
    kernel(split.parts * own, move |io| {
        team::ranges(split.rows, 1, split.parts, &|range, seat| {
            // SAFETY: each seat has its own scratch memory.
            let buffers = unsafe {
                let at = io.scratch::<u8>().add(seat * own);
                let [from, to, partial] = space::arrays(at, lengths);
                let [index] = space::arrays(at.add(floats), [index]);
                Buffers { from, to, partial, index }
            };
            let part = Part { split: &split, access, pool: &pool, io, range, buffers };
            A::Reach::run(Isa::active(), part);
        })
    })
}

struct Part<'a, A, P> {
    split: &'a RowSplit,
    access: Access<A>,
    pool: &'a P,
    io: &'a Io<'a>,
    range: Range<usize>,
    buffers: Buffers<'a, A>,
}

impl<A: Sum, P: Pool<A>> Body for Part<'_, A, P> {
    type Output = ();

    #[inline(always)]
    fn run<L: Level>(mut self) {
        let Part { split, access, io, .. } = self;
        for row in self.range.clone() {
            let row = split.row(row);
            self.pool.row(split, access, io, row, &mut self.buffers);
            // SAFETY: output 0 is the result, and the row belongs to this part.
            unsafe { split.to.write(access, io.output(0), row, self.buffers.to) };
        }
    }
}
