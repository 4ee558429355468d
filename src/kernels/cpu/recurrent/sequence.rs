//! The rows and steps of a recurrence in memory.
#![allow(unsafe_code)]

use std::ops::Range;

use crate::kernels::Io;
use crate::ops::recurrent::{Form, Part, Parts, Sizes};

/// Rows are computed in blocks of at most so many: products of fewer read the weights too often,
/// and more blocks can be shared by more threads.
const MOST: usize = 16;
/// The number of rows of a block, except for the last, is a multiple of this.
const GRAIN: usize = 4;

/// The number of rows of a block, of which there are at least two if possible.
pub fn block(rows: usize) -> usize {
    rows.div_ceil(2).next_multiple_of(GRAIN).min(MOST)
}

/// A tensor whose last axis has `columns` elements; empty where it is not there.
#[derive(Clone, Copy)]
pub struct Rows<W> {
    at: *mut W,
    columns: usize,
}

// SAFETY: an address only; blocks access rows of their own.
unsafe impl<W> Send for Rows<W> {}
// SAFETY: as above.
unsafe impl<W> Sync for Rows<W> {}

impl<W> Rows<W> {
    fn new(at: Option<*mut W>, columns: usize) -> Self {
        match at {
            Some(at) => Rows { at, columns },
            None => Rows { at: std::ptr::dangling_mut(), columns: 0 },
        }
    }

    /// Row `row`.
    ///
    /// # Safety
    /// The tensor has it, and nothing writes it in the meantime.
    #[inline(always)]
    pub unsafe fn get<'a>(self, row: usize) -> &'a [W] {
        // SAFETY: by the caller's promise.
        unsafe { std::slice::from_raw_parts(self.at.add(row * self.columns), self.columns) }
    }

    /// Row `row`, to be written.
    ///
    /// # Safety
    /// The tensor has it, and nothing else accesses it in the meantime.
    #[inline(always)]
    pub unsafe fn put<'a>(self, row: usize) -> &'a mut [W] {
        // SAFETY: by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.at.add(row * self.columns), self.columns) }
    }

    /// Copies some rows to the beginning of an array.
    ///
    /// # Safety
    /// As for [`Rows::get`].
    pub unsafe fn load(self, rows: &Range<usize>, to: &mut [W])
    where
        W: Copy,
    {
        let columns = self.columns;
        for (i, n) in rows.clone().enumerate() {
            // SAFETY: by the caller's promise.
            to[i * columns..][..columns].copy_from_slice(unsafe { self.get(n) });
        }
    }

    /// Copies some rows from the beginning of an array.
    ///
    /// # Safety
    /// As for [`Rows::put`].
    pub unsafe fn store(self, rows: &Range<usize>, from: &[W])
    where
        W: Copy,
    {
        let columns = self.columns;
        for (i, n) in rows.clone().enumerate() {
            // SAFETY: by the caller's promise.
            unsafe { self.put(n) }.copy_from_slice(&from[i * columns..][..columns]);
        }
    }
}

/// How rows and steps are numbered.
#[derive(Clone, Copy)]
pub struct Sequence<'a> {
    /// The form.
    pub form: Form,
    /// The extents.
    pub sizes: Sizes,
    /// The number of steps of each row, if they differ.
    pub lengths: Option<&'a [i64]>,
}

impl<'a> Sequence<'a> {
    /// The sequence whose lengths, if it has any, are the last input.
    ///
    /// # Safety
    /// The input is contiguous, and nothing writes it in the meantime.
    pub unsafe fn new(form: Form, sizes: Sizes, io: &Io<'a>) -> Self {
        let last = io.input_count() - 1;
        // SAFETY: by the caller's promise.
        let lengths = form.lengths.then(|| unsafe { io.read(last, sizes.rows) });
        Sequence { form, sizes, lengths }
    }

    /// The number of steps of a row.
    #[inline(always)]
    pub fn length(&self, row: usize) -> usize {
        self.lengths.map_or(self.sizes.steps, |lengths| lengths[row] as usize)
    }

    /// Where step `step` of a row, one that it has, lies in tensors of all steps.
    #[inline(always)]
    pub fn at(&self, step: usize, row: usize) -> usize {
        let time = if self.form.reverse { self.length(row) - 1 - step } else { step };
        time * self.sizes.rows + row
    }

    /// The rows of a block that have a step, as numbers within the block.
    #[inline(always)]
    pub fn active(&self, step: usize, rows: &Range<usize>) -> impl Iterator<Item = usize> {
        let (sequence, first) = (*self, rows.start);
        (0..rows.len()).filter(move |i| step < sequence.length(first + i))
    }

    /// Zeroes the steps that rows of a block do not have.
    ///
    /// # Safety
    /// Nothing else accesses these rows.
    pub unsafe fn clear<W: Copy + Default>(&self, tensor: Rows<W>, rows: &Range<usize>) {
        for row in rows.clone() {
            for time in self.length(row)..self.sizes.steps {
                // SAFETY: by the caller's promise.
                unsafe { tensor.put(time * self.sizes.rows + row) }.fill(W::default());
            }
        }
    }

    fn columns(&self, part: Part) -> usize {
        let Sizes { units, state, .. } = self.sizes;
        match part {
            Part::Given | Part::Gates => self.form.cell.gates() * units,
            Part::States | Part::State => state,
            Part::Cells | Part::Cell | Part::Bias => units,
            Part::Peepholes => 3 * units,
            Part::Weight | Part::Projection | Part::Lengths => 0,
        }
    }

    /// The first input that is this part.
    pub fn input<W>(&self, io: &Io, parts: &Parts, part: Part) -> Rows<W> {
        let at = parts.iter().position(|one| *one == part);
        Rows::new(at.map(|i| io.input::<W>(i).cast_mut()), self.columns(part))
    }

    /// The last input that is this part.
    pub fn saved<W>(&self, io: &Io, parts: &Parts, part: Part) -> Rows<W> {
        let at = parts.iter().rposition(|one| *one == part);
        Rows::new(at.map(|i| io.input::<W>(i).cast_mut()), self.columns(part))
    }

    /// The output that is this part.
    pub fn output<W>(&self, io: &Io, parts: &Parts, part: Part) -> Rows<W> {
        let at = parts.iter().position(|one| *one == part);
        Rows::new(at.map(|o| io.output::<W>(o)), self.columns(part))
    }
}
