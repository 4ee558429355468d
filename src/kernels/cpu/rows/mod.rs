//! What works row by row along an axis: statistics of a row, one pass each, then the elements of
//! the result. Rows are taken one at a time where the axis is innermost in memory, otherwise several
//! adjacent ones at once, as the columns of a tile. Either way the loops vectorise.
#![allow(unsafe_code)]

mod block;
pub mod cross_entropy;
pub mod norm;
pub mod softmax;

use std::ops::Range;

use super::space;
use crate::device::team;
use crate::error::Result;
use crate::kernels::cpu::matmul::tile::Sum;
use crate::kernels::cpu::simd::isa::{Body, Isa, Level, Reach};
use crate::kernels::cpu::simd::wide::Wide;
use crate::kernels::cpu::strided::access::Access;
use crate::kernels::cpu::strided::walk::{Dim, Walk, dims, sorted};
use crate::kernels::{Io, Width};
use crate::ops::Meta;
use block::{Block, Pieces};

/// The number of a row's values that are buffered at a time.
const CHUNK: usize = 2048;
/// The number of columns computed together.
const COLUMNS: usize = 64;
/// The longest rows that are computed as columns though they are contiguous.
const SHORT: usize = 48;
/// The maximum length of columns that are kept in a buffer during the computation: a tile of them
/// fits into the L2 cache.
const HELD: usize = 1024;
/// The same of a row.
const HELD_ROW: usize = HELD * COLUMNS;

/// What is known of a row: its greatest value, then up to three sums.
type Known<S> = [S; 4];
/// The pass that computes the result.
const LAST: usize = 4;
/// The result (or what takes its place) and up to three inputs; the last stands in for those that
/// there are not.
const TENSORS: usize = 4;

/// The computation on rows of `I` inputs, in type `W`. All callees must be `#[inline(always)]`.
trait RowFn<W: Wide, const I: usize>: Copy + Sync {
    /// The type of the statistics.
    type Stat: Copy + Default;
    /// Whether pass 0 seeks the greatest value of the first input; NaNs are ignored.
    const SEEKS: bool = false;
    /// Whether there is a result element by element.
    const MAPS: bool = true;

    /// How many sums are computed, in passes 1, 2 and 3.
    #[inline(always)]
    fn sums(self) -> usize {
        1
    }

    /// Whether a pass reads an input.
    #[inline(always)]
    fn reads(self, _pass: usize, _input: usize) -> bool {
        true
    }

    /// What is known of row `_row` in advance.
    #[inline(always)]
    fn start(self, _row: usize) -> Known<Self::Stat> {
        Known::default()
    }

    /// The greatest value, as it is known.
    #[inline(always)]
    fn greatest(self, _value: W) -> Self::Stat {
        Self::Stat::default()
    }

    /// What pass 1 takes instead of an element of the first input.
    #[inline(always)]
    fn prepared<L: Level>(self, x: W, _known: Known<Self::Stat>) -> W {
        x
    }

    /// Whether later passes take it, too.
    #[inline(always)]
    fn keeps(self) -> bool {
        true
    }

    /// The term of pass `P`'s sum.
    fn term<L: Level, const P: usize>(self, x: [W; I], known: Known<Self::Stat>) -> f64;

    /// Takes the sum of pass `P` into `known`.
    fn summed<const P: usize>(self, total: f64, known: &mut Known<Self::Stat>);

    /// An element of the result.
    #[inline(always)]
    fn element<L: Level>(self, x: [W; I], _known: Known<Self::Stat>) -> W {
        x[0]
    }

    /// Takes what is known of row `_row` in the end.
    #[inline(always)]
    fn done(self, _row: usize, _known: Known<Self::Stat>) {}

    /// Fills `_to` with part `_part` of row `_row` of input `_i`, if it is not read from memory.
    #[inline(always)]
    fn makes(self, _i: usize, _row: usize, _part: Range<usize>, _to: &mut [W]) -> bool {
        false
    }
}

/// The rows of a result and its inputs, all of one shape.
struct Rows<W> {
    access: Access<W>,
    axis: Dim<TENSORS>,
    /// All other dimensions, in the result's memory order.
    others: Walk<TENSORS>,
    /// The others except for the innermost, and the innermost, if columns are computed together.
    columns: Option<(Walk<TENSORS>, Dim<TENSORS>)>,
    first_input: usize,
    width: usize,
    /// How many values of a tile are kept in scratch memory.
    room: usize,
}

impl<W: Wide + Sum> Rows<W> {
    /// Rows taken one at a time; `inputs` are those of the operation from `first_input` on.
    fn new(
        result: &Meta,
        inputs: &[&Meta],
        axis: usize,
        first_input: usize,
        access: Access<W>,
        Width(width): Width,
    ) -> Self {
        let input = |i: usize| inputs[i.min(inputs.len() - 1)];
        let mut others = dims([result, input(0), input(1), input(2)]);
        let (axis, others) = (others.remove(axis), Walk::new(sorted(&others, 0)));
        Rows { access, axis, others, columns: None, first_input, width, room: 0 }
    }

    /// The same rows, in any order, and in tiles where the axis is not innermost, or where it is too
    /// short for loops along it. The values of the only input are kept (`keeps`), unless columns are
    /// too long.
    fn or_columns(mut self, keeps: bool) -> Self {
        let (axis, inner) = (self.axis, self.others.inner());
        let is_outer = axis.strides[0].unsigned_abs() > inner.strides[0].unsigned_abs();
        if !is_outer && axis.extent <= SHORT {
            self.others = self.others.longest_inside();
        } else if !is_outer {
            let is_held = keeps && (CHUNK + 1..=HELD_ROW).contains(&axis.extent);
            return Rows { room: if is_held { axis.extent } else { 0 }, ..self };
        }
        if self.others.elements() == 0 || self.others.inner().extent < 8 {
            return self;
        }
        let room = if keeps && axis.extent <= HELD { axis.extent * COLUMNS } else { 0 };
        Rows { room, ..self.in_columns() }
    }

    /// The same rows, always in tiles.
    fn in_columns(self) -> Self {
        Rows { columns: Some(self.others.clone().split_inner()), ..self }
    }

    /// Bytes of scratch memory.
    fn scratch(&self) -> usize {
        self.width * space::bytes::<W>([self.room])
    }

    /// Computes all rows.
    fn run<const I: usize>(&self, io: &Io, f: impl RowFn<W, I>) -> Result<()> {
        let tasks = match &self.columns {
            Some((outer, inner)) => outer.elements() * inner.extent.div_ceil(COLUMNS),
            None => self.others.elements(),
        };
        team::ranges(tasks, 1, self.width, &|range, seat| {
            let at = seat * space::bytes::<W>([self.room]);
            // SAFETY: each seat has its own scratch memory.
            let [held] = unsafe { space::arrays(io.scratch::<u8>().wrapping_add(at), [self.room]) };
            W::Reach::run(Isa::active(), Part { rows: self, io, f, range, held });
        })
    }
}

/// One thread's part of the rows.
struct Part<'a, W, F, const I: usize> {
    rows: &'a Rows<W>,
    io: &'a Io<'a>,
    f: F,
    range: Range<usize>,
    held: &'a mut [W],
}

impl<W: Wide + Sum, F: RowFn<W, I>, const I: usize> Body for Part<'_, W, F, I> {
    type Output = ();

    #[inline(always)]
    fn run<L: Level>(self) {
        match &self.rows.columns {
            None => self.rows::<L>(),
            Some((outer, inner)) => self.columns::<L>(outer, inner),
        }
    }
}

impl<W: Wide + Sum, F: RowFn<W, I>, const I: usize> Part<'_, W, F, I> {
    #[inline(always)]
    fn rows<L: Level>(self) {
        let Part { rows, io, f, range, held } = self;
        let mut buffers = [[W::ZERO; CHUNK]; I];
        let mut values = slices(&mut buffers);
        if !held.is_empty() {
            values[0] = held;
        }
        let mut block = Block::<W, F, I, 1>::new(rows, io, f, values);
        let (steps, mut row) = (rows.others.inner().strides, range.start);
        for (mut at, n) in rows.others.runs(range) {
            for _ in 0..n {
                block.run::<L>(row, Pieces::of_row(at, rows.axis));
                (0..TENSORS).for_each(|t| at[t] += steps[t]);
                row += 1;
            }
        }
    }

    #[inline(always)]
    fn columns<L: Level>(self, outer: &Walk<TENSORS>, inner: &Dim<TENSORS>) {
        let Part { rows, io, f, range, held } = self;
        let tiles = inner.extent.div_ceil(COLUMNS);
        let mut buffers = [[W::ZERO; COLUMNS]; I];
        let mut values = slices(&mut buffers);
        if !held.is_empty() {
            values[0] = held;
        }
        let mut block = Block::<W, F, I, COLUMNS>::new(rows, io, f, values);
        for task in range {
            let (o, first) = (task / tiles, task % tiles * COLUMNS);
            let width = COLUMNS.min(inner.extent - first);
            for (mut at, _) in outer.runs(o..o + 1) {
                (0..TENSORS).for_each(|t| at[t] += inner.strides[t] * first as isize);
                let pieces = Pieces::of_tile(at, rows.axis, inner.strides, width);
                block.run::<L>(o * inner.extent + first, pieces);
            }
        }
    }
}

#[inline(always)]
fn slices<W, const I: usize, const B: usize>(buffers: &mut [[W; B]; I]) -> [&mut [W]; I] {
    buffers.each_mut().map(|buffer| &mut buffer[..])
}
