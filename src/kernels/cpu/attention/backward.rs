//! The gradient: for each block of keys, all queries that see it. Weights are computed a second time
//! from the logarithms of their sums (Dao et al., FlashAttention, 2022), keys x queries, so that
//! most products read them row by row.
#![allow(unsafe_code)]

use super::blocks::{Range, Sides};
use super::dropping::Dropping;
use super::heads::{Blocks, Heads, Matrices};
use super::masks::{Limits, Masks};
use super::results::Results;
use super::scratch::{Arrays, Layout};
use super::slopes::Slopes;
use super::steps::Products;
use crate::device::team;
use crate::error::Result;
use crate::kernels::cpu::matmul::tile::Factor;
use crate::kernels::cpu::random::philox::State;
use crate::kernels::cpu::simd::dot::Dot;
use crate::kernels::cpu::simd::isa::{self, Isa};
use crate::kernels::cpu::simd::wide::Wide;
use crate::kernels::{Io, Kernel, Width};

/// The numbers of the inputs.
const DY: usize = 0;
const Q: usize = 1;
const K: usize = 2;
const V: usize = 3;
const Y: usize = 4;
const LSE: usize = 5;
/// Heads of keys are split between tasks until there are so many.
const TASKS: usize = 16;

/// What the gradient is computed from.
pub struct Setup<T: Factor> {
    /// Sizes and numbers of heads.
    pub heads: Heads,
    /// What products are multiplied by.
    pub scale: T::Sum,
    /// Whether queries see no later keys.
    pub causal: bool,
    /// The keys that queries see.
    pub masks: Masks<T::Sum>,
    /// The weights that were dropped.
    pub dropping: Option<Dropping<T::Sum>>,
    /// The matrices of dy, q, k, v and y, and the columns of lse.
    pub inputs: [Matrices; 6],
}

/// Blocks of keys.
pub struct Backward<T: Factor> {
    setup: Setup<T>,
    results: Results<T>,
    sides: Sides,
    /// How blocks of dy, q, k and v are read.
    read: [Blocks; 4],
    products: Products<T::Sum>,
    layout: Layout,
    /// The parts that the blocks of a head's keys are split into.
    splits: usize,
    width: Width,
}

/// Where a task is.
#[derive(Clone, Copy)]
struct Place {
    /// The head of keys.
    shared: usize,
    keys: Range,
    limits: Limits,
    state: Option<State>,
}

/// Some queries of a head.
#[derive(Clone, Copy)]
struct Queries {
    head: usize,
    /// Among the heads that share keys.
    member: usize,
    rows: Range,
}

type Space<'a, T> = Arrays<'a, <T as Factor>::Sum>;

impl<T: Factor<Sum: Wide + Factor<Sum = T::Sum>>> Backward<T> {
    /// Prepares it.
    ///
    /// # Errors
    /// [`crate::Error::Library`].
    pub fn new(setup: Setup<T>, outputs: Vec<Matrices>, width: Width) -> Result<Self> {
        let heads = setup.heads;
        let results = Results { heads, scale: setup.scale, outputs };
        let [keys, values] = heads.widths;
        let of = [(DY, values), (Q, keys), (K, keys), (V, values)];
        let read = of.map(|(i, columns)| Blocks::new::<T>(&setup.inputs[i], columns));
        let sides = Sides::gradient(&heads, setup.causal);
        let products = Products::new(&heads, sides, &read)?;
        let layout = Layout::new(&heads, sides, &read, setup.dropping.is_some());
        let blocks = heads.lengths[1].div_ceil(sides.keys);
        let wanted = TASKS.div_ceil(heads.shared().max(1));
        let splits = wanted.min(blocks).max(1);
        Ok(Backward { setup, results, sides, read, products, layout, splits, width })
    }

    fn tasks(&self) -> usize {
        self.setup.heads.shared() * self.splits
    }

    fn seats(&self) -> usize {
        self.width.seats(self.tasks())
    }

    fn bytes_of_seat(&self) -> usize {
        self.layout.bytes::<T::Sum>() + self.products.scratch()
    }

    /// The number of arrays of gradients of queries: one a seat if it does all blocks of a head,
    /// else one a task.
    fn sums(&self) -> usize {
        if self.splits == 1 { self.seats() } else { self.tasks() }
    }

    /// The address of such an array.
    fn sums_at(&self, io: &Io, index: usize) -> *mut T::Sum {
        let first = io.scratch::<u8>().wrapping_add(self.seats() * self.bytes_of_seat());
        first.wrapping_add(index * self.layout.bytes_of_sums::<T::Sum>()).cast()
    }

    /// The blocks of keys of a task.
    fn blocks(&self, task: usize) -> impl Iterator<Item = Range> + use<T> {
        let keys = self.setup.heads.lengths[1];
        let split = task % self.splits;
        // Every n-th block, since the first ones of causal attention are seen by most queries.
        Sides::cut(self.sides.keys, keys).skip(split).step_by(self.splits)
    }

    /// # Safety
    /// `io` is what this was made for, and each task runs once.
    unsafe fn task(&self, io: &Io, seat: usize, task: usize) -> Result<()> {
        let heads = &self.setup.heads;
        let shared = task / self.splits;
        let limits = self.setup.masks.limits(io, shared / heads.each[1]);
        let state = self.setup.dropping.as_ref().map(|dropping| dropping.state(io));
        let at = io.scratch::<u8>().wrapping_add(seat * self.bytes_of_seat());
        let sums = self.sums_at(io, if self.splits == 1 { seat } else { task });
        // SAFETY: each seat has its own memory, and each task its own keys.
        unsafe {
            let mut space = self.layout.arrays(at, sums);
            space.sums.fill(T::Sum::ZERO);
            self.own(io, shared, &mut space);
            for keys in self.blocks(task) {
                let at = Place { shared, keys, limits, state };
                self.block(io, at, &mut space)?;
            }
            if self.splits == 1 {
                self.results.write_queries(io, shared, &mut [space.sums]);
            }
        }
        Ok(())
    }

    /// For all queries of the heads that share keys, the products of results and their gradients.
    ///
    /// # Safety
    /// As [`Backward::task`].
    unsafe fn own(&self, io: &Io, shared: usize, space: &mut Space<T>) {
        let (heads, inputs) = (&self.setup.heads, &self.setup.inputs);
        let [y, dy] = &mut space.rows;
        for (i, own) in space.own.iter_mut().enumerate() {
            let (head, row) = (shared * heads.group() + i / heads.lengths[0], i % heads.lengths[0]);
            for (input, to) in [(Y, &mut **y), (DY, &mut **dy)] {
                let from = inputs[input].at::<T>(io.input(input), head, row);
                // SAFETY: by the caller's promise.
                unsafe { T::gather(from, inputs[input].column, to) };
            }
            *own = isa::run(Isa::active(), Dot(y, dy));
        }
    }

    /// The gradients that a block of keys takes part in.
    ///
    /// # Safety
    /// As [`Backward::task`].
    unsafe fn block(&self, io: &Io, at: Place, space: &mut Space<T>) -> Result<()> {
        let (heads, (first, _)) = (&self.setup.heads, at.keys);
        space.keys.fill(T::Sum::ZERO);
        space.values.fill(T::Sum::ZERO);
        // SAFETY: by the caller's promise.
        let tiles = unsafe {
            let [k, v] = &mut space.tiles_of_keys;
            [self.tile(io, K, at.shared, at.keys, k), self.tile(io, V, at.shared, at.keys, v)]
        };
        for member in 0..heads.group() {
            let head = at.shared * heads.group() + member;
            for rows in Sides::cut(self.sides.rows, heads.lengths[0]) {
                let queries = Queries { head, member, rows };
                // SAFETY: by the caller's promise.
                unsafe {
                    let is_seen = at.limits.keys(rows.0 + rows.1 - 1) > first;
                    if is_seen {
                        self.add(io, at, queries, tiles, space)?;
                    }
                    let slopes = is_seen.then_some(&*space.slopes);
                    self.results.write_scores(io, head, [rows, at.keys], slopes);
                }
            }
        }
        // SAFETY: by the caller's promise.
        unsafe { self.results.write_keys(io, at.shared, at.keys, [space.keys, space.values]) };
        Ok(())
    }

    /// Adds the part of some queries.
    ///
    /// # Safety
    /// As [`Backward::task`]; `tiles` are the addresses of the keys and values.
    unsafe fn add(
        &self,
        io: &Io,
        at: Place,
        queries: Queries,
        [k, v]: [*const T::Sum; 2],
        space: &mut Space<T>,
    ) -> Result<()> {
        let products = self.products.of(queries.rows.1, at.keys.1);
        // SAFETY: by the caller's promise.
        unsafe {
            let [q, dy] = &mut space.tiles_of_queries;
            let q = self.tile(io, Q, queries.head, queries.rows, q);
            let dy = self.tile(io, DY, queries.head, queries.rows, dy);
            let (scores, slopes) = (space.scores.as_mut_ptr(), space.slopes.as_mut_ptr());
            products.scores.run([k, q], scores, space.library)?;
            products.slopes.run([v, dy], slopes, space.library)?;
            self.slopes(io, at, queries, space);
            products.values.run([scores, dy], space.values.as_mut_ptr(), space.library)?;
            products.keys.run([slopes, q], space.keys.as_mut_ptr(), space.library)?;
            let [rows, wide] = [self.setup.heads.lengths[0], self.setup.heads.widths[0]];
            let sums = &mut space.sums[(queries.member * rows + queries.rows.0) * wide..];
            products.queries.run([slopes, k], sums.as_mut_ptr(), space.library)
        }
    }

    /// # Safety
    /// As [`Backward::task`].
    unsafe fn tile(
        &self,
        io: &Io,
        input: usize,
        head: usize,
        (first, count): Range,
        room: &mut [T::Sum],
    ) -> *const T::Sum {
        let tensor = &self.setup.inputs[input];
        let from = tensor.at::<T>(io.input(input), head, first);
        // SAFETY: by the caller's promise.
        unsafe { self.read[input].load(tensor, from, count, room) }
    }

    /// Turns products into weights and the gradients of scores.
    ///
    /// # Safety
    /// As [`Backward::task`].
    unsafe fn slopes(&self, io: &Io, at: Place, queries: Queries, space: &mut Space<T>) {
        let (setup, (row, width), (first, keys)) = (&self.setup, queries.rows, at.keys);
        let lse = &setup.inputs[LSE];
        let from = lse.at::<T::Sum>(io.input(LSE), queries.head, row);
        // SAFETY: by the caller's promise.
        unsafe { T::Sum::gather(from, lse.row, &mut space.logs[..width]) };
        let number = queries.head * setup.heads.lengths[0] + row;
        let factors = at.state.zip(setup.dropping.as_ref()).map(|(state, dropping)| {
            let factors = &mut space.factors[..keys * width];
            dropping.factors(state, number..number + width, [first, keys], factors);
            &*factors
        });
        let bias = |j: usize, to: &mut [T::Sum]| {
            let Some(bias) = &setup.masks.bias else { return false };
            // SAFETY: by the caller's promise.
            unsafe { bias.down(io, queries.head, row, first + j, to) };
            true
        };
        let own = &space.own[queries.member * setup.heads.lengths[0] + row..][..width];
        let seen = |j: usize| at.limits.first_row(first + j, row + width).saturating_sub(row);
        let body = Slopes {
            scores: &mut space.scores[..keys * width],
            slopes: &mut space.slopes[..keys * width],
            width,
            scale: setup.scale,
            bias,
            room: &mut space.bias[..width],
            first: seen,
            rows: [&space.logs[..width], own],
            factors,
        };
        isa::run(Isa::active(), body);
    }

    /// Adds up what the tasks of each head found.
    fn total(&self, io: &Io) -> Result<()> {
        let shared = self.setup.heads.shared();
        team::each(shared, self.width.0, |shared, _| {
            let sums = |split| self.sums_at(io, shared * self.splits + split);
            let len = self.layout.sums;
            // SAFETY: the arrays were written by the tasks, and each is read by one.
            unsafe {
                let array = |split| std::slice::from_raw_parts_mut(sums(split), len);
                let mut arrays: Vec<_> = (0..self.splits).map(array).collect();
                self.results.write_queries(io, shared, &mut arrays);
            }
            Ok(())
        })
    }
}

impl<T: Factor<Sum: Wide + Factor<Sum = T::Sum>>> Kernel for Backward<T> {
    fn scratch(&self) -> usize {
        self.seats() * self.bytes_of_seat() + self.sums() * self.layout.bytes_of_sums::<T::Sum>()
    }

    fn check(&self, io: &Io) -> Result<()> {
        self.setup.masks.check(io)
    }

    fn threads(&self) -> usize {
        self.seats()
    }

    fn run(&self, io: &Io) -> Result<()> {
        self.check(io)?;
        team::each(self.tasks(), self.seats(), |task, seat| {
            // SAFETY: the metas are those of the tensors; each task runs once.
            unsafe { self.task(io, seat, task) }
        })?;
        if self.splits > 1 { self.total(io) } else { Ok(()) }
    }
}
