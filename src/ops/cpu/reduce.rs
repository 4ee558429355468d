//! Reductions over any axes of any strided tensor.
//!
//! The reduced elements of one output are cut into blocks of a length that depends on the shape
//! alone, each is folded in a fixed order, and partial results are joined as a binary tree. So
//! the result does not depend on the number of threads.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;

use super::isa::{self, Baseline, Body, Isa, Level};
use super::reduce_fold::Fold;
use super::walk::{Dim, Walk, dims};
use crate::device::team;
use crate::dtype::Element;
use crate::ops::{Io, Kernel, Meta, Width, kernel};

/// Partial results side by side, so that a row is folded in vectors.
const LANES: usize = 32;
/// Elements of a block where rows are folded.
const ROW_BLOCK: usize = 8192;
/// Elements that are gathered at a time where they do not lie side by side.
const CHUNK: usize = 512;
/// Outputs that are computed together where columns are folded.
const TILE: usize = 1024;
/// Elements of a block of a tile, at least.
const TILE_BLOCK: usize = 65536;
/// Shorter rows are folded as columns.
const SHORT: usize = 32;

/// How a reduction goes through its input.
struct Plan {
    /// The kept dimensions, in the input and in the output.
    kept: Walk<2>,
    /// The reduced ones.
    reduced: Walk<1>,
    /// The kept dimensions but for the innermost, if columns are folded.
    columns: Option<(Walk<2>, Dim<2>)>,
    /// Reduced elements in a block, and how many blocks there are.
    block: usize,
    blocks: usize,
}

impl Plan {
    /// `ordered`: the reduced elements must be taken in row-major order.
    fn new(x: &Meta, axes: &[usize], ordered: bool) -> Plan {
        let mut step = 1;
        let (mut kept, mut reduced) = (Vec::new(), Vec::new());
        for (d, dim) in dims([x]).into_iter().enumerate().rev() {
            if axes.contains(&d) {
                reduced.push(dim);
            } else {
                kept.push(Dim { extent: dim.extent, strides: [dim.strides[0], step] });
                step *= dim.extent as isize;
            }
        }
        kept.reverse();
        reduced.reverse();
        kept.sort_by_key(|d| std::cmp::Reverse(d.strides[0].unsigned_abs()));
        if !ordered {
            reduced.sort_by_key(|d| std::cmp::Reverse(d.strides[0].unsigned_abs()));
        }
        Plan::of(Walk::new(kept), Walk::new(reduced))
    }

    fn of(kept: Walk<2>, reduced: Walk<1>) -> Plan {
        let columns = is_by_columns(&kept, &reduced).then(|| kept.clone().split_inner());
        let width = columns.as_ref().map(|(_, dim)| dim.extent.clamp(1, TILE));
        let block = width.map_or(ROW_BLOCK, |width| (TILE_BLOCK / width).max(64));
        let blocks = reduced.elements().div_ceil(block).max(1);
        Plan { kept, reduced, columns, block, blocks }
    }

    /// How many pieces of work there are.
    fn tasks(&self) -> usize {
        let outputs = match &self.columns {
            Some((outer, dim)) => outer.elements() * dim.extent.div_ceil(TILE),
            None => self.kept.elements(),
        };
        outputs * self.blocks
    }

    /// The reduced elements of block `b`.
    fn block(&self, b: usize) -> Range<usize> {
        b * self.block..((b + 1) * self.block).min(self.reduced.elements())
    }
}

/// Whether it is faster to fold many outputs at once, row upon row, than one after the other.
fn is_by_columns(kept: &Walk<2>, reduced: &Walk<1>) -> bool {
    let (k, r) = (kept.inner(), reduced.inner());
    if kept.elements() < 2 {
        return false;
    }
    let is_outer = r.extent < 2 || r.strides[0].unsigned_abs() > k.strides[0].unsigned_abs();
    if is_outer { k.extent >= 8 } else { reduced.elements() < SHORT }
}

/// How a reduction of values of type `V` with results of type `R` meets its tensors' dtypes.
pub struct Access<V, R> {
    /// Reads elements, as [`super::reduce_fold::Operand::load`].
    pub load: unsafe fn(*const u8, isize, isize, &mut [V]),
    /// Whether elements are of type `V` themselves.
    pub direct: bool,
    /// Writes a result, as [`super::reduce_fold::store`].
    pub store: unsafe fn(*mut u8, isize, R, usize),
}

/// Which code runs a body.
pub trait Runner: 'static {
    /// Runs it.
    fn run<B: Body>(body: B) -> B::Output;
}

/// The best instruction set: for the reductions that training spends time in.
pub struct Vector;

impl Runner for Vector {
    fn run<B: Body>(body: B) -> B::Output {
        isa::run(Isa::active(), body)
    }
}

/// The least instruction set: compiled once, for the others.
pub struct Plain;

impl Runner for Plain {
    fn run<B: Body>(body: B) -> B::Output {
        body.run::<Baseline>()
    }
}

/// Prepares the reduction `F` of `x` over `axes` into a row-major output. `ordered`: the reduced
/// elements must be counted in row-major order.
pub fn prepare<V: Element, F: Fold<V>, C: Runner>(
    x: &Meta,
    axes: &[usize],
    ordered: bool,
    access: Access<V, F::Result>,
    width: Width,
) -> Arc<dyn Kernel> {
    let plan = Plan::new(x, axes, ordered);
    let partials = if plan.blocks > 1 { plan.kept.elements() * plan.blocks } else { 0 };
    kernel(partials * size_of::<F::Acc>(), move |io| {
        let part = |job: Job, len: usize, part: usize| {
            let range = team::share(len, 1, width.0, part);
            C::run(Part::<V, F> { plan: &plan, io, access: &access, job, range });
        };
        team::parallel(width.0, &|p| part(Job::Fold, plan.tasks(), p))?;
        if plan.blocks == 1 {
            return Ok(());
        }
        team::parallel(width.0, &|p| part(Job::Join, plan.kept.elements(), p))
    })
}

#[derive(Clone, Copy)]
enum Job {
    /// Folds blocks; `range` counts tasks.
    Fold,
    /// Joins the partial results of outputs; `range` counts outputs.
    Join,
}

/// One thread's part of a reduction.
struct Part<'a, V, F: Fold<V>> {
    plan: &'a Plan,
    io: &'a Io<'a>,
    access: &'a Access<V, F::Result>,
    job: Job,
    range: Range<usize>,
}

impl<V: Element, F: Fold<V>> Body for Part<'_, V, F> {
    type Output = ();

    #[inline(always)]
    fn run<L: Level>(self) {
        match (self.job, &self.plan.columns) {
            (Job::Join, _) => self.join(),
            (Job::Fold, None) => self.rows(),
            (Job::Fold, Some((outer, dim))) => self.columns(outer, dim),
        }
    }
}

impl<V: Element, F: Fold<V>> Part<'_, V, F> {
    /// Stores what became of block `b` of output `k`, whose place is `to`.
    #[inline(always)]
    fn emit(&self, k: usize, b: usize, to: isize, acc: F::Acc) {
        if self.plan.blocks == 1 {
            return self.store(to, acc);
        }
        let place = b * self.plan.kept.elements() + k;
        // SAFETY: the scratch has one for each output and block, which belongs to one task.
        unsafe { self.io.scratch::<F::Acc>().add(place).write(acc) };
    }

    #[inline(always)]
    fn store(&self, to: isize, acc: F::Acc) {
        let count = self.plan.reduced.elements();
        // SAFETY: the output has this element, which belongs to one task.
        unsafe { (self.access.store)(self.io.output(0), to, F::finish(acc), count) };
    }

    #[inline(always)]
    fn join(&self) {
        let mut k = self.range.start;
        let step = self.plan.kept.inner().strides[1];
        self.plan.kept.runs(self.range.clone(), |[_, to], n| {
            for i in 0..n as isize {
                self.store(to + i * step, self.tree(k, 0..self.plan.blocks));
                k += 1;
            }
        });
    }

    /// Joins blocks of output `k`.
    fn tree(&self, k: usize, blocks: Range<usize>) -> F::Acc {
        if blocks.len() == 1 {
            let place = blocks.start * self.plan.kept.elements() + k;
            // SAFETY: `emit` wrote it.
            return unsafe { self.io.scratch::<F::Acc>().add(place).read() };
        }
        let middle = blocks.start + blocks.len() / 2;
        F::join(self.tree(k, blocks.start..middle), self.tree(k, middle..blocks.end))
    }

    /// Folds outputs one after the other.
    #[inline(always)]
    fn rows(&self) {
        let blocks = self.plan.blocks;
        let (start, end) = (self.range.start, self.range.end);
        let mut k = start / blocks;
        let [step, step_out] = self.plan.kept.inner().strides;
        self.plan.kept.runs(k..end.div_ceil(blocks), |[from, to], n| {
            for i in 0..n as isize {
                let first = start.saturating_sub(k * blocks);
                for b in first..(end - k * blocks).min(blocks) {
                    let acc = self.row(from + i * step, self.plan.block(b));
                    self.emit(k, b, to + i * step_out, acc);
                }
                k += 1;
            }
        });
    }

    /// Folds some of the reduced elements from place `from` on.
    #[inline(always)]
    fn row(&self, from: isize, elements: Range<usize>) -> F::Acc {
        let mut lanes = [F::START; LANES];
        let inner = self.plan.reduced.inner();
        let long = inner.extent >= 64 || inner.extent == self.plan.reduced.elements();
        let mut index = elements.start;
        if self.access.direct && inner.strides[0] == 1 && long {
            self.plan.reduced.runs(elements, |[at], n| {
                // SAFETY: the run lies within the input, whose elements are values.
                let row = unsafe {
                    std::slice::from_raw_parts(self.io.input::<V>(0).offset(from + at), n)
                };
                fold_row::<_, F>(&mut lanes, row, index);
                index += n;
            });
        } else {
            while index < elements.end {
                let chunk = index..elements.end.min(index + CHUNK);
                let (n, values) = (chunk.len(), self.gather(from, chunk));
                fold_row::<_, F>(&mut lanes, &values[..n], index);
                index += n;
            }
        }
        collapse::<_, F>(lanes)
    }

    /// Up to [`CHUNK`] of the reduced elements from place `from` on.
    #[inline(always)]
    fn gather(&self, from: isize, elements: Range<usize>) -> [V; CHUNK] {
        let mut values = [V::default(); CHUNK];
        let (step, mut done) = (self.plan.reduced.inner().strides[0], 0);
        self.plan.reduced.runs(elements, |[at], n| {
            self.load(from + at, step, &mut values[done..done + n]);
            done += n;
        });
        values
    }

    /// Reads the elements at places `at + i * step` of the input.
    #[inline(always)]
    fn load(&self, at: isize, step: isize, to: &mut [V]) {
        // SAFETY: callers stay within the input.
        unsafe { (self.access.load)(self.io.input(0), at, step, to) }
    }

    /// Folds tiles of outputs together.
    #[inline(always)]
    fn columns(&self, outer: &Walk<2>, dim: &Dim<2>) {
        let (tiles, blocks) = (dim.extent.div_ceil(TILE), self.plan.blocks);
        let mut buffer = [F::START; TILE];
        for task in self.range.clone() {
            let (b, tile, o) = (task % blocks, task / blocks % tiles, task / blocks / tiles);
            let columns = tile * TILE..dim.extent.min((tile + 1) * TILE);
            let acc = &mut buffer[..columns.len()];
            acc.fill(F::START);
            outer.runs(o..o + 1, |from, _| {
                let at = |t: usize, c: usize| from[t] + c as isize * dim.strides[t];
                self.tile(at(0, columns.start), dim.strides[0], self.plan.block(b), acc);
                for (c, &acc) in columns.clone().zip(acc.iter()) {
                    self.emit(o * dim.extent + c, b, at(1, c), acc);
                }
            });
        }
    }

    /// Folds some of the reduced elements of the outputs `acc`, whose inputs start at place
    /// `from` and are `step` apart.
    #[inline(always)]
    fn tile(&self, from: isize, step: isize, elements: Range<usize>, acc: &mut [F::Acc]) {
        let mut buffer = [V::default(); TILE];
        let next = self.plan.reduced.inner().strides[0];
        let mut index = elements.start as i64;
        self.plan.reduced.runs(elements, |[at], n| {
            let mut row = 0;
            while row < n {
                let place = from + at + row as isize * next;
                if self.access.direct && step == 1 && row + 4 <= n {
                    take_rows::<_, F>(acc, self.four_rows(place, next, acc.len()), index);
                    row += 4;
                    index += 4;
                } else {
                    let values = &mut buffer[..acc.len()];
                    self.load(place, step, values);
                    take_row::<_, F>(acc, values, index);
                    row += 1;
                    index += 1;
                }
            }
        });
    }

    /// Rows of the input at `place` and three times `next` further, of elements that are values.
    #[inline(always)]
    fn four_rows(&self, place: isize, next: isize, width: usize) -> [&[V]; 4] {
        debug_assert!(self.access.direct);
        // SAFETY: the rows lie within the input.
        [0, 1, 2, 3].map(|r| unsafe {
            let first = self.io.input::<V>(0).offset(place + r * next);
            std::slice::from_raw_parts(first, width)
        })
    }
}

#[inline(always)]
fn fold_row<V: Copy, F: Fold<V>>(lanes: &mut [F::Acc; LANES], row: &[V], index: usize) {
    let mut acc = *lanes;
    let (full, rest) = row.as_chunks::<LANES>();
    for (i, chunk) in full.iter().enumerate() {
        for l in 0..LANES {
            acc[l] = F::take(acc[l], chunk[l], (index + i * LANES + l) as i64);
        }
    }
    for (l, &value) in rest.iter().enumerate() {
        acc[l] = F::take(acc[l], value, (index + full.len() * LANES + l) as i64);
    }
    *lanes = acc;
}

#[inline(always)]
fn collapse<V, F: Fold<V>>(mut lanes: [F::Acc; LANES]) -> F::Acc {
    let mut half = LANES / 2;
    while half > 0 {
        for l in 0..half {
            lanes[l] = F::join(lanes[l], lanes[l + half]);
        }
        half /= 2;
    }
    lanes[0]
}

#[inline(always)]
fn take_row<V: Copy, F: Fold<V>>(acc: &mut [F::Acc], row: &[V], index: i64) {
    for (acc, &value) in acc.iter_mut().zip(row) {
        *acc = F::take(*acc, value, index);
    }
}

#[inline(always)]
fn take_rows<V: Copy, F: Fold<V>>(acc: &mut [F::Acc], [a, b, c, d]: [&[V]; 4], index: i64) {
    for ((((acc, &a), &b), &c), &d) in acc.iter_mut().zip(a).zip(b).zip(c).zip(d) {
        let two = F::take(F::take(*acc, a, index), b, index + 1);
        *acc = F::take(F::take(two, c, index + 2), d, index + 3);
    }
}
