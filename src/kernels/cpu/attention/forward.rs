//! The forward pass, a block of queries at a time (Dao et al., FlashAttention, 2022).
#![allow(unsafe_code)]

use rustc_hash::FxHashMap;

use super::blocks::{Range, Sides};
use super::dropping::Dropping;
use super::heads::{Blocks, Heads, Matrices};
use super::masks::{Limits, Masks};
use super::weights::{Running, Weigh};
use crate::device::team;
use crate::dtype::Element;
use crate::error::Result;
use crate::kernels::cpu::matmul::small::Small;
use crate::kernels::cpu::matmul::tile::{Factor, Sum};
use crate::kernels::cpu::random::philox::State;
use crate::kernels::cpu::simd::isa::{self, Isa};
use crate::kernels::cpu::simd::wide::Wide;
use crate::kernels::cpu::space;
use crate::kernels::{Io, Kernel, Width};

/// What all ways of the forward pass know.
pub struct Setup<T: Factor> {
    /// Sizes and numbers of heads.
    pub heads: Heads,
    /// What products are multiplied by.
    pub scale: T::Sum,
    /// The keys that queries see.
    pub masks: Masks<T::Sum>,
    /// The weights that are dropped.
    pub dropping: Option<Dropping<T::Sum>>,
    /// The matrices of q, k, v and y.
    pub tensors: [Matrices; 4],
    /// The columns of lse.
    pub lse: Matrices,
}

/// Blocks of queries, each with the blocks of keys that it sees.
pub struct Forward<T: Factor> {
    setup: Setup<T>,
    sides: Sides,
    /// How blocks of q, k and v are read.
    read: [Blocks; 3],
    /// By the numbers of queries and keys: products with keys, and with values.
    products: FxHashMap<Range, [Small<T::Sum>; 2]>,
    width: Width,
}

/// The scratch memory of one seat.
struct Space<'a, W> {
    tiles: [&'a mut [W]; 3],
    scores: &'a mut [W],
    bias: &'a mut [W],
    running: [&'a mut [W]; 3],
    seen: &'a mut [usize],
    library: *mut u8,
}

/// Some queries of a head.
#[derive(Clone, Copy)]
struct Place {
    head: usize,
    rows: Range,
    limits: Limits,
    state: Option<State>,
}

impl<T: Factor<Sum: Wide + Factor<Sum = T::Sum>>> Forward<T> {
    /// Prepares it.
    ///
    /// # Errors
    /// [`crate::Error::Library`].
    pub fn new(setup: Setup<T>, width: Width) -> Result<Self> {
        let Heads { widths: [wide, values], .. } = setup.heads;
        let [q, k, v, _] = &setup.tensors;
        let read = [(q, wide), (k, wide), (v, values)].map(|(of, n)| Blocks::new::<T>(of, n));
        let sides = Sides::forward(&setup.heads);
        let mut made = Forward { setup, sides, read, products: FxHashMap::default(), width };
        for rows in Sides::cut(sides.rows, made.setup.heads.lengths[0]) {
            for (_, keys) in made.keys(rows) {
                if !made.products.contains_key(&(rows.1, keys)) {
                    let products = made.product(rows.1, keys)?;
                    made.products.insert((rows.1, keys), products);
                }
            }
        }
        Ok(made)
    }

    /// The blocks of keys that some queries see at most.
    fn keys(&self, (first, count): Range) -> impl Iterator<Item = Range> + Clone + use<T> {
        let keys = self.setup.heads.lengths[1];
        let seen = self.setup.masks.seen_by(first + count - 1);
        self.sides.keys_up_to(seen, keys)
    }

    fn product(&self, rows: usize, keys: usize) -> Result<[Small<T::Sum>; 2]> {
        let ([q, k, v], [wide, values]) = (&self.read, self.setup.heads.widths);
        let [scores, sums] = [keys, values].map(|columns| [columns.max(1) as isize, 1]);
        Ok([
            Small::new([rows, keys, wide], [q.steps, k.turned(), scores], false)?,
            Small::new([rows, values, keys], [scores, v.steps, sums], true)?,
        ])
    }

    /// The lengths of a seat's arrays.
    fn lengths(&self) -> [usize; 8] {
        let (Sides { rows, keys }, [q, k, v]) = (self.sides, &self.read);
        let values = self.setup.heads.widths[1];
        [q.room(rows), k.room(keys), v.room(keys), rows * keys, keys, rows, rows, rows * values]
    }

    fn library(&self) -> usize {
        let all = self.products.values().flatten().map(Small::scratch);
        all.max().unwrap_or(0).next_multiple_of(64)
    }

    fn bytes_of_seat(&self) -> usize {
        let counts = space::bytes::<usize>([self.sides.rows]);
        space::bytes::<T::Sum>(self.lengths()) + counts + self.library()
    }

    fn tasks(&self) -> usize {
        let Heads { lengths: [rows, _], .. } = self.setup.heads;
        self.setup.heads.count() * rows.div_ceil(self.sides.rows)
    }

    fn seats(&self) -> usize {
        self.width.seats(self.tasks())
    }

    /// # Safety
    /// There are [`Forward::bytes_of_seat`] bytes at `at`, which nothing else uses.
    unsafe fn space<'a>(&self, at: *mut u8) -> Space<'a, T::Sum> {
        let lengths = self.lengths();
        let counts = at.wrapping_add(space::bytes::<T::Sum>(lengths));
        let library = counts.wrapping_add(space::bytes::<usize>([self.sides.rows]));
        // SAFETY: by the caller's promise.
        let (arrays, [seen]) =
            unsafe { (space::arrays(at, lengths), space::arrays(counts, [self.sides.rows])) };
        let [q, k, v, scores, bias, greatest, sums, values] = arrays;
        let running = [greatest, sums, values];
        Space { tiles: [q, k, v], scores, bias, running, seen, library }
    }

    /// The queries of a task: those of a head that see most keys come first.
    fn place(&self, io: &Io, task: usize) -> Place {
        let Heads { lengths: [rows, _], .. } = self.setup.heads;
        let blocks = rows.div_ceil(self.sides.rows);
        let (head, block) = (task / blocks, blocks - 1 - task % blocks);
        let first = block * self.sides.rows;
        let limits = self.setup.masks.limits(io, self.setup.heads.batch(head));
        let state = self.setup.dropping.as_ref().map(|dropping| dropping.state(io));
        Place { head, rows: (first, self.sides.rows.min(rows - first)), limits, state }
    }

    /// # Safety
    /// `io` is what this was made for, and nothing else writes these queries' results.
    unsafe fn attend(&self, io: &Io, at: Place, space: &mut Space<T::Sum>) -> Result<()> {
        let ((first, count), [q, ..]) = (at.rows, &self.setup.tensors);
        let from = q.at::<T>(io.input(0), at.head, first);
        // SAFETY: by the caller's promise.
        let queries = unsafe { self.read[0].load(q, from, count, space.tiles[0]) };
        let [greatest, sums, values] = &mut space.running;
        greatest.fill(T::Sum::LOWEST);
        sums.fill(T::Sum::ZERO);
        values.fill(T::Sum::ZERO);
        let seen = at.limits.keys(first + count - 1);
        for keys in self.keys(at.rows).take_while(|keys| keys.0 < seen) {
            // SAFETY: by the caller's promise.
            unsafe { self.add(io, at, keys, queries, space)? };
        }
        // SAFETY: by the caller's promise.
        unsafe { self.finish(io, at, space) };
        Ok(())
    }

    /// Adds what some queries get from a block of keys.
    ///
    /// # Safety
    /// As [`Forward::attend`]; `queries` is the address of these queries.
    unsafe fn add(
        &self,
        io: &Io,
        at: Place,
        keys: Range,
        queries: *const T::Sum,
        space: &mut Space<T::Sum>,
    ) -> Result<()> {
        let (_, count) = at.rows;
        let [scores, weighed] = &self.products[&(count, keys.1)];
        // SAFETY: by the caller's promise.
        unsafe {
            let k = self.tile(io, 1, at.head, keys, space.tiles[1]);
            scores.run([queries, k], space.scores.as_mut_ptr(), space.library)?;
            self.weigh(io, at, keys, space);
            let v = self.tile(io, 2, at.head, keys, space.tiles[2]);
            let values = space.running[2].as_mut_ptr();
            weighed.run([space.scores.as_ptr(), v], values, space.library)
        }
    }

    /// # Safety
    /// As [`Forward::attend`].
    unsafe fn tile(
        &self,
        io: &Io,
        input: usize,
        head: usize,
        (first, count): Range,
        room: &mut [T::Sum],
    ) -> *const T::Sum {
        let tensor = &self.setup.tensors[input];
        let from = tensor.at::<T>(io.input(input), head / self.setup.heads.group(), first);
        // SAFETY: by the caller's promise.
        unsafe { self.read[input].load(tensor, from, count, room) }
    }

    /// # Safety
    /// As [`Forward::attend`].
    unsafe fn weigh(&self, io: &Io, at: Place, (first, keys): Range, space: &mut Space<T::Sum>) {
        let ((row, count), setup) = (at.rows, &self.setup);
        for (i, seen) in space.seen[..count].iter_mut().enumerate() {
            *seen = at.limits.keys(row + i).saturating_sub(first).min(keys);
        }
        let [greatest, sums, values] = &mut space.running;
        let values = &mut values[..count * setup.heads.widths[1]];
        let running = Running { greatest: &mut greatest[..count], sums, values };
        let bias = |i: usize, to: &mut [T::Sum]| {
            let Some(bias) = &setup.masks.bias else { return false };
            // SAFETY: by the caller's promise.
            unsafe { bias.across(io, at.head, row + i, first, to) };
            true
        };
        let scores = &mut space.scores[..count * keys];
        let (seen, room, scale) = (&*space.seen, &mut *space.bias, setup.scale);
        isa::run(Isa::active(), Weigh { scores, width: keys, scale, bias, room, seen, running });
        let (Some(dropping), Some(state)) = (&setup.dropping, at.state) else { return };
        for (i, weights) in space.scores[..count * keys].chunks_exact_mut(keys).enumerate() {
            let number = at.head * setup.heads.lengths[0] + row + i;
            dropping.apply(state, number, first, weights);
        }
    }

    /// # Safety
    /// As [`Forward::attend`].
    unsafe fn finish(&self, io: &Io, at: Place, space: &mut Space<T::Sum>) {
        let [greatest, sums, values] = &mut space.running;
        let columns = self.setup.heads.widths[1];
        for i in 0..at.rows.1 {
            let known = [greatest[i], sums[i]];
            let values = &mut values[i * columns..(i + 1) * columns];
            // SAFETY: by the caller's promise.
            unsafe { self.setup.store(io, at.head, at.rows.0 + i, known, values) };
        }
    }
}

impl<T: Factor<Sum: Wide + Factor<Sum = T::Sum>>> Setup<T> {
    /// Writes the result of a query: the values divided by the sum, and the sum's logarithm.
    ///
    /// # Safety
    /// `io` is what this was made for, and nothing else writes this query's results.
    pub unsafe fn store(
        &self,
        io: &Io,
        head: usize,
        row: usize,
        [greatest, sum]: [T::Sum; 2],
        values: &mut [T::Sum],
    ) {
        // SAFETY: by the caller's promise.
        unsafe {
            let (factor, log) = if sum == T::Sum::ZERO {
                self.of_nothing(io, head, row)
            } else {
                let log = greatest.to_f64() + sum.to_f64().ln();
                (T::Sum::ONE / sum, T::Sum::of(log))
            };
            values.iter_mut().for_each(|value| *value = *value * factor);
            let y = &self.tensors[3];
            let to = y.at::<T>(io.output::<T>(0), head, row).cast_mut();
            T::scatter(values, to, y.column);
            *self.lse.at::<T::Sum>(io.output::<T::Sum>(1), head, row).cast_mut() = log;
        }
    }

    /// The factor and the logarithm of a query whose weights sum to 0: it sees no key, or keys with
    /// scores of -inf only.
    ///
    /// # Safety
    /// As [`Setup::store`].
    unsafe fn of_nothing(&self, io: &Io, head: usize, row: usize) -> (T::Sum, T::Sum) {
        let limits = self.masks.limits(io, self.heads.batch(head));
        // SAFETY: by the caller's promise.
        if unsafe { self.masks.sees_any(io, head, row, limits) } {
            let unknown = T::Sum::of(f64::NAN);
            return (unknown, unknown);
        }
        (T::Sum::ONE, T::Sum::of(f64::INFINITY))
    }

    /// Writes the state that weights were dropped by.
    pub fn store_state(&self, io: &Io) {
        let Some(dropping) = &self.dropping else { return };
        let State { key, position } = dropping.state(io);
        // SAFETY: the output is two int64.
        let drawn = unsafe { io.write::<i64>(2, 2) };
        drawn.copy_from_slice(&[key as i64, position as i64]);
    }
}

impl<T: Factor<Sum: Wide + Factor<Sum = T::Sum>>> Kernel for Forward<T> {
    fn scratch(&self) -> usize {
        self.seats() * self.bytes_of_seat()
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
        let bytes = self.bytes_of_seat();
        team::each(self.tasks(), self.seats(), |task, seat| {
            let at = io.scratch::<u8>().wrapping_add(seat * bytes);
            // SAFETY: each seat has its own memory, and each task its own queries.
            unsafe { self.attend(io, self.place(io, task), &mut self.space(at)) }
        })
    }
}
