//! The forward pass of a few queries, as in generation: chunks of keys in parallel, whose results
//! are put together in their order (Dao et al., Flash-Decoding, 2023).
#![allow(unsafe_code)]

use super::blocks::Range;
use super::forward::Setup;
use super::heads::{Blocks, Heads};
use super::rows::{Rows, Scores, Sums};
use super::weights::{Running, Weigh};
use crate::device::team;
use crate::error::Result;
use crate::kernels::cpu::matmul::tile::{Factor, Sum};
use crate::kernels::cpu::simd::isa::{self, Body, Isa, Level};
use crate::kernels::cpu::simd::wide::Wide;
use crate::kernels::cpu::space;
use crate::kernels::{Io, Kernel, Width};

/// The most queries of a head for which tiles do not pay off.
const FEW: usize = 8;
/// The keys of a chunk.
const KEYS: usize = 256;

/// Chunks of keys.
pub struct Few<T: Factor> {
    setup: Setup<T>,
    /// How chunks of k and v are read.
    read: [Blocks; 2],
    /// The queries that share keys.
    queries: usize,
    width: Width,
}

/// The scratch memory of a seat.
struct Space<'a, W> {
    queries: &'a mut [W],
    tiles: [&'a mut [W]; 2],
    scores: &'a mut [W],
    bias: &'a mut [W],
    seen: &'a mut [usize],
}

/// What a chunk finds for each query that shares its keys.
struct Found<'a, W> {
    greatest: &'a mut [W],
    sums: &'a mut [W],
    values: &'a mut [W],
}

impl<T: Factor<Sum: Wide + Factor<Sum = T::Sum>>> Few<T> {
    /// Whether there are so few queries.
    pub fn suits(heads: &Heads) -> bool {
        heads.lengths[0] <= FEW
    }

    /// Prepares it.
    pub fn new(setup: Setup<T>, width: Width) -> Self {
        let Heads { widths, lengths, .. } = setup.heads;
        let read = [0, 1].map(|i| Blocks::new::<T>(&setup.tensors[1 + i], widths[i]));
        let queries = setup.heads.group() * lengths[0];
        Few { setup, read, queries, width }
    }

    fn chunks(&self) -> usize {
        self.setup.heads.lengths[1].div_ceil(KEYS).max(1)
    }

    fn tasks(&self) -> usize {
        self.setup.heads.shared() * self.chunks()
    }

    fn seats(&self) -> usize {
        self.width.seats(self.tasks())
    }

    fn lengths(&self) -> [usize; 5] {
        let (queries, keys) = (self.queries, KEYS.min(self.setup.heads.lengths[1]));
        let [k, v] = self.read.map(|blocks| blocks.room(keys));
        [queries * self.setup.heads.widths[0], k, v, queries * keys, keys]
    }

    fn bytes_of_seat(&self) -> usize {
        space::bytes::<T::Sum>(self.lengths()) + space::bytes::<usize>([self.queries])
    }

    fn lengths_found(&self) -> [usize; 3] {
        [self.queries, self.queries, self.queries * self.setup.heads.widths[1]]
    }

    /// # Safety
    /// Nothing else uses what the task found.
    unsafe fn found<'a>(&self, io: &Io, task: usize) -> Found<'a, T::Sum> {
        let lengths = self.lengths_found();
        let first = self.seats() * self.bytes_of_seat();
        let at = io.scratch::<u8>().wrapping_add(first + task * space::bytes::<T::Sum>(lengths));
        // SAFETY: by the caller's promise.
        let [greatest, sums, values] = unsafe { space::arrays(at, lengths) };
        Found { greatest, sums, values }
    }

    /// # Safety
    /// Nothing else uses the seat's memory.
    unsafe fn space<'a>(&self, io: &Io, seat: usize) -> Space<'a, T::Sum> {
        let at = io.scratch::<u8>().wrapping_add(seat * self.bytes_of_seat());
        let counts = at.wrapping_add(space::bytes::<T::Sum>(self.lengths()));
        // SAFETY: by the caller's promise.
        let (arrays, [seen]) =
            unsafe { (space::arrays(at, self.lengths()), space::arrays(counts, [self.queries])) };
        let [queries, k, v, scores, bias] = arrays;
        Space { queries, tiles: [k, v], scores, bias, seen }
    }

    /// The head, and the query among its own, of one of those that share keys.
    fn query(&self, shared: usize, i: usize) -> (usize, usize) {
        let Heads { lengths: [rows, _], .. } = self.setup.heads;
        (shared * self.setup.heads.group() + i / rows, i % rows)
    }

    /// # Safety
    /// `io` is what this was made for, and each task runs once.
    unsafe fn attend(&self, io: &Io, seat: usize, task: usize) {
        let heads = &self.setup.heads;
        let (shared, first) = (task / self.chunks(), task % self.chunks() * KEYS);
        let keys = (first, KEYS.min(heads.lengths[1] - first));
        let limits = self.setup.masks.limits(io, shared / heads.each[1]);
        // SAFETY: by the caller's promise.
        unsafe {
            let (found, mut space) = (self.found(io, task), self.space(io, seat));
            found.greatest.fill(T::Sum::LOWEST);
            found.sums.fill(T::Sum::ZERO);
            for (i, seen) in space.seen.iter_mut().enumerate() {
                let row = self.query(shared, i).1;
                *seen = limits.keys(row).saturating_sub(first).min(keys.1);
            }
            if space.seen.iter().all(|seen| *seen == 0) {
                return found.values.fill(T::Sum::ZERO);
            }
            self.score(io, shared, keys, &mut space);
            self.weigh(io, shared, keys, &mut space, [found.greatest, found.sums]);
            let [_, v] = &mut space.tiles;
            let rows = self.rows(io, 1, shared, keys, v);
            let weights = &space.scores[..self.queries * keys.1];
            isa::run(Isa::active(), Sums { weights, rows, values: found.values });
        }
    }

    /// Rows of keys or values.
    ///
    /// # Safety
    /// As [`Few::attend`].
    unsafe fn rows(
        &self,
        io: &Io,
        which: usize,
        shared: usize,
        (first, count): Range,
        room: &mut [T::Sum],
    ) -> Rows<T::Sum> {
        let (of, read) = (&self.setup.tensors[1 + which], &self.read[which]);
        let from = of.at::<T>(io.input(1 + which), shared, first);
        // SAFETY: by the caller's promise.
        unsafe { Rows::new(read.load(of, from, count, room), read.steps[0], [count, read.columns]) }
    }

    /// # Safety
    /// As [`Few::attend`].
    unsafe fn score(&self, io: &Io, shared: usize, keys: Range, space: &mut Space<T::Sum>) {
        let (q, wide) = (&self.setup.tensors[0], self.setup.heads.widths[0]);
        for i in 0..self.queries {
            let (head, row) = self.query(shared, i);
            let to = &mut space.queries[i * wide..(i + 1) * wide];
            // SAFETY: by the caller's promise.
            unsafe { T::gather(q.at::<T>(io.input(0), head, row), q.column, to) };
        }
        // SAFETY: by the caller's promise.
        let rows = unsafe { self.rows(io, 0, shared, keys, space.tiles[0]) };
        let scores = &mut space.scores[..self.queries * keys.1];
        isa::run(Isa::active(), Scores { queries: space.queries, keys: rows, scores });
    }

    /// # Safety
    /// As [`Few::attend`].
    unsafe fn weigh(
        &self,
        io: &Io,
        shared: usize,
        (first, count): Range,
        space: &mut Space<T::Sum>,
        [greatest, sums]: [&mut [T::Sum]; 2],
    ) {
        let setup = &self.setup;
        let bias = |i: usize, to: &mut [T::Sum]| {
            let Some(bias) = &setup.masks.bias else { return false };
            let (head, row) = self.query(shared, i);
            // SAFETY: by the caller's promise.
            unsafe { bias.across(io, head, row, first, to) };
            true
        };
        let scores = &mut space.scores[..self.queries * count];
        let (seen, room, scale) = (&*space.seen, &mut *space.bias, setup.scale);
        let running = Running { greatest, sums, values: &mut [] };
        isa::run(Isa::active(), Weigh { scores, width: count, scale, bias, room, seen, running });
        let Some(dropping) = &setup.dropping else { return };
        let state = dropping.state(io);
        for (i, weights) in scores_of(space.scores, self.queries, count).enumerate() {
            let (head, row) = self.query(shared, i);
            dropping.apply(state, head * setup.heads.lengths[0] + row, first, weights);
        }
    }

    /// Puts the results of a head's chunks together.
    ///
    /// # Safety
    /// `io` is what this was made for; all chunks are done.
    unsafe fn finish(&self, io: &Io, shared: usize) {
        let chunks = self.chunks();
        // SAFETY: by the caller's promise.
        unsafe {
            let mut total = self.found(io, shared * chunks);
            for chunk in 1..chunks {
                let other = self.found(io, shared * chunks + chunk);
                isa::run(Isa::active(), Join { total: &mut total, other: &other });
            }
            let columns = self.setup.heads.widths[1];
            for i in 0..self.queries {
                let (head, row) = self.query(shared, i);
                let values = &mut total.values[i * columns..(i + 1) * columns];
                self.setup.store(io, head, row, [total.greatest[i], total.sums[i]], values);
            }
        }
    }
}

fn scores_of<W>(scores: &mut [W], queries: usize, count: usize) -> impl Iterator<Item = &mut [W]> {
    scores[..queries * count].chunks_exact_mut(count)
}

/// Adds what one chunk found to what others did.
struct Join<'a, 'b, W> {
    total: &'a mut Found<'b, W>,
    other: &'a Found<'b, W>,
}

impl<W: Wide + Sum> Body for Join<'_, '_, W> {
    type Output = ();

    #[inline(always)]
    fn run<L: Level>(self) {
        let Join { total, other } = self;
        let columns = total.values.len() / total.sums.len().max(1);
        for i in 0..total.sums.len() {
            let (a, b) = (total.greatest[i], other.greatest[i]);
            let now = if b > a { b } else { a };
            let base = if now == W::LOWEST { W::ZERO } else { now };
            let [old, new] = [a, b].map(|x| (x - base).exp_flushed::<L>());
            total.greatest[i] = now;
            total.sums[i] = total.sums[i] * old + other.sums[i] * new;
            let range = i * columns..(i + 1) * columns;
            let pairs = total.values[range.clone()].iter_mut().zip(&other.values[range]);
            pairs.for_each(|(sum, x)| *sum = *sum * old + *x * new);
        }
    }
}

impl<T: Factor<Sum: Wide + Factor<Sum = T::Sum>>> Kernel for Few<T> {
    fn scratch(&self) -> usize {
        let found = space::bytes::<T::Sum>(self.lengths_found());
        self.seats() * self.bytes_of_seat() + self.tasks() * found
    }

    fn check(&self, io: &Io) -> Result<()> {
        self.setup.masks.check(io)
    }

    fn threads(&self) -> usize {
        self.seats()
    }

    fn run(&self, io: &Io) -> Result<()> {
        self.check(io)?;
        self.setup.store_state(io);
        team::each(self.tasks(), self.seats(), |task, seat| {
            // SAFETY: each seat has its own memory, and each task its own keys.
            unsafe { self.attend(io, seat, task) };
            Ok(())
        })?;
        // SAFETY: all chunks are done.
        (0..self.setup.heads.shared()).for_each(|shared| unsafe { self.finish(io, shared) });
        Ok(())
    }
}
