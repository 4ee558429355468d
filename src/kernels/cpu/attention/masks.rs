//! Which keys a query attends to, and what is added to its scores.
#![allow(unsafe_code)]

use super::heads::{Matrices, offsets, spread};
use crate::dtype::Bool;
use crate::error::{Error, Result};
use crate::kernels::Io;
use crate::kernels::cpu::matmul::tile::{Factor, Sum};
use crate::kernels::cpu::strided::access::gather;
use crate::ops::Meta;
use crate::ops::attention::{Extra, Rule, Sizes};
use crate::shape::Shape;

/// The numbers of keys, the positions and the mask of an operation.
pub struct Masks<W> {
    op: &'static str,
    /// The number of keys.
    keys: usize,
    causal: bool,
    lengths: Option<Counts>,
    start: Option<Counts>,
    /// What is added to the scores.
    pub bias: Option<Bias<W>>,
}

/// A number for each batch.
struct Counts {
    input: usize,
    offsets: Vec<isize>,
    most: i64,
    what: &'static str,
}

/// What is added to the scores: numbers, or -inf where a query may not attend to a key.
pub struct Bias<W> {
    input: usize,
    size: usize,
    places: Matrices,
    read: unsafe fn(*const u8, isize, &mut [W]),
}

/// Which keys the queries of a batch may attend to at most.
#[derive(Clone, Copy)]
pub struct Limits {
    /// The number of keys that count.
    length: usize,
    /// The position of the first query, if none sees later keys.
    start: Option<usize>,
}

impl Limits {
    /// How many of the first keys query `row` may attend to.
    pub fn keys(&self, row: usize) -> usize {
        let seen = |start: usize| start.saturating_add(row).saturating_add(1).min(self.length);
        self.start.map_or(self.length, seen)
    }

    /// The first query that may attend to a key, of so many.
    pub fn first_row(&self, key: usize, rows: usize) -> usize {
        if key >= self.length {
            return rows;
        }
        self.start.map_or(0, |start| key.saturating_sub(start).min(rows))
    }
}

impl<W: Sum + Factor<Sum = W>> Masks<W> {
    /// Those of the optional inputs, each with its number; T is the type of the queries.
    pub fn new<T: Factor<Sum = W>>(
        op: &'static str,
        rule: &Rule,
        sizes: &Sizes,
        extra: &Extra<(usize, &Meta)>,
    ) -> Self {
        let keys = sizes.lengths[1];
        let counts = |given: Option<(usize, &Meta)>, most: i64, what: &'static str| {
            given.map(|(input, meta)| Counts::new(input, meta, &sizes.batch, most, what))
        };
        Masks {
            op,
            keys,
            causal: rule.causal,
            lengths: counts(extra.lengths, keys as i64, "lengths"),
            start: counts(extra.start, i64::MAX, "a start"),
            bias: extra.mask.map(|(input, meta)| Bias::new::<T>(input, meta, &sizes.scores())),
        }
    }

    /// Checks the numbers of keys and the positions.
    ///
    /// # Errors
    /// [`Error::Value`] for one out of range.
    pub fn check(&self, io: &Io) -> Result<()> {
        [&self.lengths, &self.start]
            .into_iter()
            .flatten()
            .try_for_each(|one| one.check(self.op, io))
    }

    /// Those of a batch.
    pub fn limits(&self, io: &Io, batch: usize) -> Limits {
        let read = |counts: &Option<Counts>| counts.as_ref().map(|one| one.get(io, batch) as usize);
        let start = self.causal.then(|| read(&self.start).unwrap_or(0));
        Limits { length: read(&self.lengths).unwrap_or(self.keys), start }
    }

    /// Whether query `row` of a head may attend to any key.
    ///
    /// # Safety
    /// `io` is what this was made for.
    pub unsafe fn sees_any(&self, io: &Io, head: usize, row: usize, limits: Limits) -> bool {
        let Some(bias) = &self.bias else { return limits.keys(row) > 0 };
        let mut one = [W::default()];
        (0..limits.keys(row)).any(|key| {
            // SAFETY: by the caller's promise.
            unsafe { bias.across(io, head, row, key, &mut one) };
            one[0] != W::LOWEST
        })
    }

    /// How many of the first keys query `row` may attend to at most, as far as the sizes tell.
    pub fn seen_by(&self, row: usize) -> usize {
        let is_known = self.causal && self.start.is_none();
        if is_known { self.keys.min(row + 1) } else { self.keys }
    }
}

impl Counts {
    fn new(input: usize, meta: &Meta, batch: &Shape, most: i64, what: &'static str) -> Self {
        Counts { input, offsets: offsets(batch, &spread(meta, batch)), most, what }
    }

    fn get(&self, io: &Io, batch: usize) -> i64 {
        // SAFETY: the offset is that of an element of the input.
        unsafe { *io.input::<i64>(self.input).offset(self.offsets[batch]) }
    }

    fn check(&self, op: &'static str, io: &Io) -> Result<()> {
        let mut all = (0..self.offsets.len()).map(|batch| self.get(io, batch));
        match all.find(|n| !(0..=self.most).contains(n)) {
            None => Ok(()),
            Some(n) if self.most == i64::MAX => {
                Err(Error::value(op, n, format!("{} from 0 on", self.what)))
            }
            Some(n) => Err(Error::value(op, n, format!("{} from 0 to {}", self.what, self.most))),
        }
    }
}

impl<W: Sum + Factor<Sum = W>> Bias<W> {
    fn new<T: Factor<Sum = W>>(input: usize, meta: &Meta, scores: &Shape) -> Self {
        let read = match meta.dtype {
            crate::dtype::DType::Bool => read_bools::<W>,
            dtype if dtype == T::DTYPE => gather::<T>,
            _ => gather::<W>,
        };
        Bias { input, size: meta.dtype.size(), places: Matrices::broadcast(meta, scores), read }
    }

    fn at(&self, io: &Io, head: usize, row: usize, key: usize) -> *const u8 {
        let Matrices { offsets, row: down, column } = &self.places;
        let at = offsets[head] + row as isize * down + key as isize * column;
        io.input::<u8>(self.input).wrapping_offset(at * self.size as isize)
    }

    /// For a query, the numbers of consecutive keys.
    ///
    /// # Safety
    /// `io` is what this was made for, and the mask has these elements.
    pub unsafe fn across(&self, io: &Io, head: usize, row: usize, key: usize, to: &mut [W]) {
        // SAFETY: by the caller's promise.
        unsafe { (self.read)(self.at(io, head, row, key), self.places.column, to) }
    }

    /// For a key, the numbers of consecutive queries.
    ///
    /// # Safety
    /// As [`Bias::across`].
    pub unsafe fn down(&self, io: &Io, head: usize, row: usize, key: usize, to: &mut [W]) {
        // SAFETY: by the caller's promise.
        unsafe { (self.read)(self.at(io, head, row, key), self.places.row, to) }
    }
}

/// # Safety
/// The elements `step` apart from `from` on can be read.
unsafe fn read_bools<W: Sum>(from: *const u8, step: isize, to: &mut [W]) {
    for (i, to) in to.iter_mut().enumerate() {
        // SAFETY: by the caller's promise.
        let sees = unsafe { *from.cast::<Bool>().offset(i as isize * step) }.get();
        *to = if sees { W::default() } else { W::LOWEST };
    }
}
