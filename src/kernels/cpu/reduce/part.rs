//! One thread's part of a reduction.
#![allow(unsafe_code)]

use std::ops::Range;

use super::fold::Fold;
use super::{Access, TILE, Traversal};
use crate::dtype::Element;
use crate::kernels::Io;
use crate::kernels::cpu::simd::isa::{Body, Level};
use crate::kernels::cpu::strided::walk::{Dim, Walk};

/// The number of elements gathered at a time where they are not contiguous.
const CHUNK: usize = 512;

/// What a part of a reduction does.
#[derive(Clone, Copy)]
pub enum Job {
    /// Folds blocks; `range` counts tasks.
    Fold,
    /// Folds these of the rows of tasks that fold columns; `range` counts tasks. Calls for one
    /// task go on where the last one has ended.
    Take {
        /// The first row.
        start: usize,
        /// The row after the last one.
        end: usize,
    },
    /// Joins the partial results of outputs; `range` counts outputs.
    Join,
}

/// One thread's part of a reduction.
pub(super) struct Part<'a, V, F: Fold<V>> {
    pub(super) traversal: &'a Traversal,
    pub(super) io: &'a Io<'a>,
    pub(super) access: &'a Access<V, F::Result>,
    pub(super) job: Job,
    pub(super) range: Range<usize>,
}

impl<V: Element, F: Fold<V>> Body for Part<'_, V, F> {
    type Output = ();

    #[inline(always)]
    fn run<L: Level>(self) {
        match (self.job, &self.traversal.columns) {
            (Job::Join, _) => self.join(),
            (_, None) => self.rows(),
            (_, Some((outer, dim))) => self.columns(outer, dim),
        }
    }
}

impl<V: Element, F: Fold<V>> Part<'_, V, F> {
    /// Stores the partial result of block `b` of output `k`, which is at offset `to`.
    #[inline(always)]
    fn emit(&self, k: usize, b: usize, to: isize, acc: F::Acc) {
        if self.traversal.blocks == 1 {
            return self.store(to, acc);
        }
        let place = b * self.traversal.kept.elements() + k;
        // SAFETY: the scratch memory has one slot for each output and block, which belongs to one
        // task.
        unsafe { self.io.scratch::<F::Acc>().add(place).write(acc) };
    }

    #[inline(always)]
    fn store(&self, to: isize, acc: F::Acc) {
        let count = self.traversal.reduced.elements();
        // SAFETY: the output has this element, which belongs to one task.
        unsafe { (self.access.store)(self.io.output(0), to, F::finish(acc), count) };
    }

    #[inline(always)]
    fn join(&self) {
        let mut k = self.range.start;
        self.tree(&self.range, 0..self.traversal.blocks);
        let joined = self.partials(&self.range, 0);
        let step = self.traversal.kept.inner().strides[1];
        for ([_, to], n) in self.traversal.kept.runs(self.range.clone()) {
            for i in 0..n as isize {
                self.store(to + i * step, joined[k - self.range.start]);
                k += 1;
            }
        }
    }

    /// Joins the partial results of these blocks, of several outputs at a time, in the place of
    /// those of the first block.
    fn tree(&self, outputs: &Range<usize>, blocks: Range<usize>) {
        if blocks.len() == 1 {
            return;
        }
        let middle = blocks.start + blocks.len() / 2;
        self.tree(outputs, blocks.start..middle);
        self.tree(outputs, middle..blocks.end);
        let (to, from) = (self.partials(outputs, blocks.start), self.partials(outputs, middle));
        to.iter_mut().zip(from).for_each(|(to, from)| *to = F::join(*to, *from));
    }

    /// The partial results of these outputs in block `b`.
    #[allow(clippy::mut_from_ref)]
    fn partials(&self, outputs: &Range<usize>, b: usize) -> &mut [F::Acc] {
        let place = b * self.traversal.kept.elements() + outputs.start;
        // SAFETY: `emit` wrote them; the outputs belong to one thread, and callers do not hold the
        // same block twice.
        unsafe {
            let first = self.io.scratch::<F::Acc>().add(place);
            std::slice::from_raw_parts_mut(first, outputs.len())
        }
    }

    /// Folds outputs one at a time.
    #[inline(always)]
    fn rows(&self) {
        let blocks = self.traversal.blocks;
        let (start, end) = (self.range.start, self.range.end);
        let mut k = start / blocks;
        let mut buffer = [V::default(); CHUNK];
        let [step, step_out] = self.traversal.kept.inner().strides;
        for ([from, to], n) in self.traversal.kept.runs(k..end.div_ceil(blocks)) {
            for i in 0..n as isize {
                let first = start.saturating_sub(k * blocks);
                for b in first..(end - k * blocks).min(blocks) {
                    let acc = self.row(from + i * step, self.traversal.block(b), &mut buffer);
                    self.emit(k, b, to + i * step_out, acc);
                }
                k += 1;
            }
        }
    }

    /// Folds some of the reduced elements of the output whose input starts at offset `from`: run by
    /// run, or a chunk at a time where these are short or must be converted.
    #[inline(always)]
    fn row(&self, from: isize, elements: Range<usize>, buffer: &mut [V; CHUNK]) -> F::Acc {
        let (inner, all) = (self.traversal.reduced.inner(), self.traversal.reduced.elements());
        let is_flat = inner.extent == all;
        let is_direct =
            self.access.direct && inner.strides[0] == 1 && (is_flat || inner.extent >= 64);
        let mut runs =
            (is_direct && !is_flat).then(|| self.traversal.reduced.runs(elements.clone()));
        let (mut acc, mut index) = (F::START, elements.start);
        while index < elements.end {
            let ([at], n) = match &mut runs {
                Some(runs) => runs.next().expect("as many runs as there are elements"),
                None => ([index as isize], elements.end - index),
            };
            let values: &[V] = if is_direct {
                // SAFETY: the run is within the input, whose elements are of type `V`.
                unsafe { std::slice::from_raw_parts(self.io.input::<V>(0).offset(from + at), n) }
            } else {
                let values = &mut buffer[..n.min(CHUNK)];
                self.gather(from, index..index + values.len(), values);
                values
            };
            acc = F::row(acc, values, index as i64);
            index += values.len();
        }
        acc
    }

    /// Reads some of the reduced elements, counted from offset `from`.
    #[inline(always)]
    fn gather(&self, from: isize, elements: Range<usize>, to: &mut [V]) {
        let (step, mut done) = (self.traversal.reduced.inner().strides[0], 0);
        for ([at], n) in self.traversal.reduced.runs(elements) {
            self.load(from + at, step, &mut to[done..done + n]);
            done += n;
        }
    }

    /// Reads the elements at offsets `at + i * step` of the input.
    #[inline(always)]
    fn load(&self, at: isize, step: isize, to: &mut [V]) {
        // SAFETY: callers stay within the input.
        unsafe { (self.access.load)(self.io.input(0), at, step, to) }
    }

    /// Folds tiles of outputs.
    #[inline(always)]
    fn columns(&self, outer: &Walk<2>, dim: &Dim<2>) {
        let (tiles, blocks) = (dim.extent.div_ceil(TILE), self.traversal.blocks);
        let mut buffer = [F::START; TILE];
        for task in self.range.clone() {
            let (b, tile, o) = (task % blocks, task / blocks % tiles, task / blocks / tiles);
            let columns = tile * TILE..dim.extent.min((tile + 1) * TILE);
            let block = self.traversal.block(b);
            let (rows, acc) = self.share(&block, &columns, &mut buffer);
            if rows.start == block.start {
                acc.fill(F::START);
            }
            let is_end = rows.end == block.end;
            for (from, _) in outer.runs(o..o + 1) {
                let at = |t: usize, c: usize| from[t] + c as isize * dim.strides[t];
                self.tile(at(0, columns.start), dim.strides[0], rows.clone(), acc);
                for (c, &acc) in columns.clone().zip(acc.iter()).filter(|_| is_end) {
                    self.emit(o * dim.extent + c, b, at(1, c), acc);
                }
            }
        }
    }

    /// The rows of a block to be folded now, and the partial results of these columns: in the
    /// buffer, or in output 1, where they stay until the next rows are there.
    #[inline(always)]
    fn share<'a>(
        &self,
        block: &Range<usize>,
        columns: &Range<usize>,
        buffer: &'a mut [F::Acc; TILE],
    ) -> (Range<usize>, &'a mut [F::Acc]) {
        let Job::Take { start, end } = self.job else {
            return (block.clone(), &mut buffer[..columns.len()]);
        };
        // SAFETY: the caller of such a job has memory for all columns there, which no other thread
        // uses; accumulators are plain numbers.
        let kept = unsafe {
            let first = self.io.output::<F::Acc>(1).add(columns.start);
            std::slice::from_raw_parts_mut(first, columns.len())
        };
        (start..end, kept)
    }

    /// Folds some of the reduced elements of the outputs `acc`, whose inputs start at offset `from`
    /// and are `step` apart.
    #[inline(always)]
    fn tile(&self, from: isize, step: isize, elements: Range<usize>, acc: &mut [F::Acc]) {
        let mut buffer = [V::default(); TILE];
        let next = self.traversal.reduced.inner().strides[0];
        let mut index = elements.start as i64;
        for ([at], n) in self.traversal.reduced.runs(elements) {
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
        }
    }

    /// Four rows of the input, at `place` and `next` apart; its elements must be of type `V`.
    #[inline(always)]
    fn four_rows(&self, place: isize, next: isize, width: usize) -> [&[V]; 4] {
        debug_assert!(self.access.direct);
        // SAFETY: the rows are within the input.
        [0, 1, 2, 3].map(|r| unsafe {
            let first = self.io.input::<V>(0).offset(place + r * next);
            std::slice::from_raw_parts(first, width)
        })
    }
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
