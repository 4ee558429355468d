//! Running sums, products and maxima along any axis of any strided tensor, in float64 or int64. Each
//! row, or each segment of a long one, is taken in order by one thread, so the result does not depend
//! on the number of threads.
#![allow(unsafe_code)]

mod segments;

use std::ops::Range;
use std::sync::Arc;

use crate::device::team;
use crate::dtype::Element;
use crate::error::Result;
use crate::kernels::cpu::simd::isa::{Body, Isa, Least, Level, Narrow, Reach};
use crate::kernels::cpu::simd::number::Number;
use crate::kernels::cpu::strided::walk::{Dim, Walk, dims, sorted};
use crate::kernels::{Io, Kernel, Width, kernel};
use crate::ops::scan::{Scan, ScanFn};
use crate::ops::{Family, Meta, only_stored};
use segments::Segments;

/// The number of elements of a row that are held at a time.
const CHUNK: usize = 256;
/// The most columns that are held at a time, and the fewest that a thread takes at once if there are
/// as many: what it reads of a row should not end before it is worth fetching ahead.
const COLUMNS: [usize; 2] = [1024, 256];
/// The number of rows that are taken together, as each addition waits for the one before it.
const ROWS: usize = 4;

/// Prepares x -> y.
///
/// # Errors
/// Those of [`Shape::axis`](crate::shape::Shape::axis).
pub fn scan(op: &Scan, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let axis = io[0].shape.axis(op.name(), op.axis)?;
    Ok(crate::dispatch!(float io[0].dtype, T => {
        prepare(op, io, axis, Access::of::<T, T>(Element::to_f64, Element::from_f64), width)
    }, else => crate::dispatch!(computed io[0].dtype, T => {
        prepare(op, io, axis, Access::of::<T, i64>(Element::to_i64, Element::from_i64), width)
    }, else => return Err(only_stored(op.name(), io[0].dtype)))))
}

fn prepare<A: Total>(
    op: &Scan,
    io: &[&Meta],
    axis: usize,
    access: Access<A>,
    width: Width,
) -> Arc<dyn Kernel> {
    let lines = Lines::new(op, io, axis, access);
    match (op.f, Segments::of(&lines)) {
        (ScanFn::Prod, _) => kernel(0, move |io| lines.run(io, width, Times)),
        (ScanFn::Max, _) => kernel(0, move |io| lines.run(io, width, Greatest)),
        (ScanFn::Sum, None) => kernel(0, move |io| lines.run(io, width, Plus)),
        (ScanFn::Sum, Some(segments)) => {
            kernel(segments.scratch::<A>(), move |io| segments.run(&lines, io, width, Plus))
        }
    }
}

/// A type that is accumulated in.
trait Total: Number {
    const ONE: Self;
    const LEAST: Self;
}

impl Total for f64 {
    const ONE: f64 = 1.0;
    const LEAST: f64 = f64::NEG_INFINITY;
}

impl Total for i64 {
    const ONE: i64 = 1;
    const LEAST: i64 = i64::MIN;
}

/// What is accumulated.
trait Join: Copy + Send + Sync + 'static {
    /// The instruction sets that it is compiled for.
    type Reach: Reach;

    fn start<A: Total>(self) -> A;
    fn join<A: Total>(self, total: A, value: A) -> A;

    /// Replaces values by the totals up to them, in the first `N` rows at once.
    #[inline(always)]
    fn advance<A: Total, const N: usize, const EXCLUSIVE: bool>(
        self,
        totals: &mut [A; ROWS],
        held: &mut [[A; CHUNK]; ROWS],
        length: usize,
    ) {
        for i in 0..length.min(CHUNK) {
            for (total, row) in totals.iter_mut().zip(held.iter_mut()).take(N) {
                let next = self.join(*total, row[i]);
                row[i] = if EXCLUSIVE { *total } else { next };
                *total = next;
            }
        }
    }
}

#[derive(Clone, Copy)]
struct Plus;

#[derive(Clone, Copy)]
struct Times;

#[derive(Clone, Copy)]
struct Greatest;

impl Join for Plus {
    type Reach = Narrow;

    #[inline(always)]
    fn start<A: Total>(self) -> A {
        A::default()
    }

    #[inline(always)]
    fn join<A: Total>(self, total: A, value: A) -> A {
        total.plus(value)
    }
}

impl Join for Times {
    type Reach = Least;

    #[inline(always)]
    fn start<A: Total>(self) -> A {
        A::ONE
    }

    #[inline(always)]
    fn join<A: Total>(self, total: A, value: A) -> A {
        total.times(value)
    }
}

impl Join for Greatest {
    type Reach = Least;

    #[inline(always)]
    fn start<A: Total>(self) -> A {
        A::LEAST
    }

    #[inline(always)]
    fn join<A: Total>(self, total: A, value: A) -> A {
        value.larger(total)
    }
}

type Load<A> = dyn Fn(*const u8, isize, isize, &mut [A]) + Send + Sync;
type Store<A> = dyn Fn(&[A], *mut u8, isize, isize) + Send + Sync;

/// Reads elements of one type as `A`, and writes results of another; starts and steps are in
/// elements.
struct Access<A> {
    load: Box<Load<A>>,
    store: Box<Store<A>>,
}

impl<A: Total> Access<A> {
    /// For elements of type `X` and results of type `Y`.
    fn of<X: Element, Y: Element>(
        read: impl Fn(X) -> A + Copy + Send + Sync + 'static,
        round: impl Fn(A) -> Y + Copy + Send + Sync + 'static,
    ) -> Self {
        let load = move |from: *const u8, start: isize, step: isize, to: &mut [A]| {
            let from = from.cast::<X>().wrapping_offset(start);
            // SAFETY: `Lines` passes runs that lie within the tensor.
            let at = |i: usize, step: isize| unsafe { *from.offset(i as isize * step) };
            match step {
                // A constant step, so that the loop is vectorised.
                1 => (0..to.len()).for_each(|i| to[i] = read(at(i, 1))),
                _ => (0..to.len()).for_each(|i| to[i] = read(at(i, step))),
            }
        };
        let store = move |from: &[A], to: *mut u8, start: isize, step: isize| {
            let to = to.cast::<Y>().wrapping_offset(start);
            // SAFETY: as above, and each row belongs to one thread.
            let put = |y: Y, i: usize, step: isize| unsafe { *to.offset(i as isize * step) = y };
            match step {
                1 => (0..from.len()).for_each(|i| put(round(from[i]), i, 1)),
                _ => (0..from.len()).for_each(|i| put(round(from[i]), i, step)),
            }
        };
        Access { load: Box::new(load), store: Box::new(store) }
    }
}

/// The rows of x and y along the axis.
struct Lines<A> {
    access: Access<A>,
    exclusive: bool,
    axis: Dim<2>,
    /// The offsets of a row's first element, in the scan's direction.
    first: [isize; 2],
    /// All other dimensions, in the memory order of x.
    others: Walk<2>,
    /// The others except for the innermost, and the innermost, if columns are taken together.
    columns: Option<(Walk<2>, Dim<2>)>,
}

impl<A: Total> Lines<A> {
    fn new(op: &Scan, io: &[&Meta], axis: usize, access: Access<A>) -> Self {
        let mut others = dims([io[0], io[1]]);
        let mut axis = others.remove(axis);
        let mut first = [0; 2];
        if op.reverse {
            first = axis.strides.map(|step| step * axis.extent.saturating_sub(1) as isize);
            axis.strides = axis.strides.map(|step| -step);
        }
        let others = Walk::new(sorted(&others, 0));
        let inner = others.inner();
        let is_outer = axis.strides[0].unsigned_abs() > inner.strides[0].unsigned_abs();
        let columns = (is_outer && inner.extent >= 8).then(|| others.clone().split_inner());
        Lines { access, exclusive: op.exclusive, axis, first, others, columns }
    }

    fn run<J: Join>(&self, io: &Io, Width(width): Width, join: J) -> Result<()> {
        if self.others.elements() * self.axis.extent == 0 {
            return Ok(());
        }
        let (tasks, tile) = match &self.columns {
            Some((outer, inner)) => {
                let [most, least] = COLUMNS;
                let tile = inner.extent.div_ceil(width).next_multiple_of(64).clamp(least, most);
                (outer.elements() * inner.extent.div_ceil(tile), tile)
            }
            None => (self.others.elements().div_ceil(ROWS), 0),
        };
        team::ranges(tasks, 1, width, &|range, _| {
            J::Reach::run(Isa::active(), Part { lines: self, io, range, tile, join });
        })
    }
}

/// One thread's part of the rows.
struct Part<'a, A, J> {
    lines: &'a Lines<A>,
    io: &'a Io<'a>,
    range: Range<usize>,
    /// The number of columns of a task.
    tile: usize,
    join: J,
}

impl<A: Total, J: Join> Body for Part<'_, A, J> {
    type Output = ();

    #[inline(always)]
    fn run<L: Level>(self) {
        match &self.lines.columns {
            None => self.rows(),
            Some((outer, inner)) => self.columns(outer, inner),
        }
    }
}

impl<A: Total, J: Join> Part<'_, A, J> {
    #[inline(always)]
    fn rows(self) {
        let Lines { others, axis, .. } = self.lines;
        let access = Along { lines: self.lines, io: self.io, along: axis };
        let last = (self.range.end * ROWS).min(others.elements());
        let mut places = others.offsets(self.range.start * ROWS..last);
        let mut held = [[A::default(); CHUNK]; ROWS];
        for _ in self.range.clone() {
            let mut rows = [[0; 2]; ROWS];
            let count = rows.iter_mut().zip(&mut places).map(|(row, at)| *row = at).count();
            let totals = [self.join.start::<A>(); ROWS];
            advance(&access, self.join, &rows[..count], axis.extent, totals, &mut held);
        }
    }

    #[inline(always)]
    fn columns(self, outer: &Walk<2>, inner: &Dim<2>) {
        let Lines { axis, exclusive, .. } = self.lines;
        let access = Along { lines: self.lines, io: self.io, along: inner };
        let tiles = inner.extent.div_ceil(self.tile);
        let mut held = [A::default(); COLUMNS[0]];
        for task in self.range.clone() {
            let (row, start) = (task / tiles, task % tiles * self.tile);
            let length = self.tile.min(inner.extent - start);
            let mut totals = [self.join.start::<A>(); COLUMNS[0]];
            for mut at in outer.offsets(row..row + 1) {
                (0..2).for_each(|t| at[t] += inner.strides[t] * start as isize);
                for _ in 0..axis.extent {
                    access.load(at, &mut held[..length]);
                    for (total, value) in totals.iter_mut().zip(&mut held[..length]) {
                        let next = self.join.join(*total, *value);
                        *value = if *exclusive { *total } else { next };
                        *total = next;
                    }
                    access.store(at, &held[..length]);
                    (0..2).for_each(|t| at[t] += axis.strides[t]);
                }
            }
        }
    }
}

/// Runs of elements along a dimension.
struct Along<'a, A> {
    lines: &'a Lines<A>,
    io: &'a Io<'a>,
    along: &'a Dim<2>,
}

impl<A: Total> Along<'_, A> {
    #[inline(always)]
    fn load(&self, at: [isize; 2], to: &mut [A]) {
        let Lines { access, first, .. } = self.lines;
        (access.load)(self.io.input(0), first[0] + at[0], self.along.strides[0], to);
    }

    #[inline(always)]
    fn store(&self, at: [isize; 2], from: &[A]) {
        let Lines { access, first, .. } = self.lines;
        (access.store)(from, self.io.output(0), first[1] + at[1], self.along.strides[1]);
    }

    /// Where the elements from `start` on are.
    #[inline(always)]
    fn place(&self, at: [isize; 2], start: usize) -> [isize; 2] {
        std::array::from_fn(|t| at[t] + start as isize * self.along.strides[t])
    }
}

/// Up to `ROWS` rows of `extent` elements, from these totals on.
#[inline(always)]
fn advance<A: Total>(
    along: &Along<A>,
    join: impl Join,
    rows: &[[isize; 2]],
    extent: usize,
    mut totals: [A; ROWS],
    held: &mut [[A; CHUNK]; ROWS],
) {
    for start in (0..extent).step_by(CHUNK) {
        let length = CHUNK.min(extent - start);
        let each = || rows.iter().map(|row| along.place(*row, start));
        each().zip(&mut *held).for_each(|(at, held)| along.load(at, &mut held[..length]));
        let to = &mut totals;
        match (rows.len(), along.lines.exclusive) {
            (1, true) => join.advance::<A, 1, true>(to, held, length),
            (1, false) => join.advance::<A, 1, false>(to, held, length),
            (_, true) => join.advance::<A, ROWS, true>(to, held, length),
            (_, false) => join.advance::<A, ROWS, false>(to, held, length),
        }
        each().zip(&*held).for_each(|(at, held)| along.store(at, &held[..length]));
    }
}
