//! Reductions of what links have just computed: each piece is folded while it is in the cache.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use super::pass::Pass;
use super::pieces::{Cut, Passes};
use crate::device::{ALIGNMENT, team};
use crate::error::Result;
use crate::kernels::cpu::reduce::{self, Job, Reducer};
use crate::kernels::{Io, Kernel, Width};
use crate::ops::Meta;
use crate::ops::reduce::Reduce;
use crate::ops::region::Region;

/// Whether a region that ends with a reduction is processed piece by piece; `values` are the metas
/// of all its values.
pub fn is_cut(region: &Region, reduction: &Reduce, values: &[Meta]) -> bool {
    let (values, result) = values.split_at(values.len() - 1);
    let reducer = reduce::reduce(reduction, [&values[values.len() - 1], &result[0]], Width::ONE);
    reducer.is_ok_and(|reducer| cut(region, values, &reducer).is_some())
}

/// How the values of a region's links are cut.
fn cut(region: &Region, values: &[Meta], reducer: &Reducer) -> Option<Cut> {
    Cut::of(&region.before_consumer(), values, reducer, region.outputs.len() > 1)
}

/// Prepares a region that ends with a reduction.
///
/// # Errors
/// Those of the operations.
pub fn prepare(
    region: &Region,
    reduction: &Reduce,
    values: &[Meta],
    width: Width,
) -> Result<Arc<dyn Kernel>> {
    let (values, result) = values.split_at(values.len() - 1);
    let (links, kept, made) =
        (region.before_consumer(), region.keeps_last(), &values[values.len() - 1]);
    let reducer = reduce::reduce(reduction, [made, &result[0]], width)?;
    let cut = cut(region, values, &reducer);
    let passes = match &cut {
        Some(cut) => cut.passes(&links, values)?,
        None => smallvec::smallvec![(0, Pass::new(&links, values, |_| 0, width)?)],
    };
    let row = cut.as_ref().map_or(made.numel(), Cut::width) * made.dtype.size();
    let most = cut.as_ref().map_or(1, Cut::most_rows);
    let columns = cut.as_ref().and_then(Cut::columns).unwrap_or(0);
    Ok(Arc::new(Reduced {
        others: (1..region.outputs.len()).filter(|&o| Some(o) != kept).collect(),
        window: if kept.is_some() { 0 } else { (most * row).next_multiple_of(ALIGNMENT) },
        partial: (columns * reducer.accumulator).next_multiple_of(ALIGNMENT),
        seats: cut.as_ref().map_or(1, |cut| cut.units().min(width.0).max(1)),
        kept,
        row,
        cut,
        passes,
        reducer,
    }))
}

/// See the module's documentation.
struct Reduced {
    /// None: all is one piece, which all threads process.
    cut: Option<Cut>,
    passes: Passes,
    reducer: Reducer,
    /// The output that the links' last result is; if there is none, that is in scratch memory.
    kept: Option<usize>,
    /// The outputs that their other results are.
    others: SmallVec<[usize; 2]>,
    /// Bytes of a row of the links' values.
    row: usize,
    /// Bytes of scratch memory per thread for a piece, and for partial results.
    window: usize,
    partial: usize,
    seats: usize,
}

impl Reduced {
    /// Bytes of scratch memory per thread.
    fn space(&self) -> usize {
        let pass = self.passes.iter().map(|(_, pass)| pass.scratch).max().unwrap_or(0);
        self.window + self.partial + pass
    }

    /// Where the links' last result lies, from its first row on or, in scratch memory, from where
    /// that would be if `row` is the first one there.
    fn window(&self, io: &Io, row: usize, space: *mut u8) -> *mut u8 {
        self.kept.map_or_else(|| space.wrapping_sub(row * self.row), |output| io.output(output))
    }

    /// Runs the links by each pass from its first row on.
    fn run_links<'a>(
        &self,
        mut passes: impl Iterator<Item = (&'a Pass, usize)>,
        io: &Io,
        window: *mut u8,
        space: *mut u8,
    ) -> Result<()> {
        let inputs: SmallVec<[*const u8; 8]> = (0..io.input_count()).map(|i| io.input(i)).collect();
        let others = self.others.iter().map(|&output| io.output(output));
        let outputs: SmallVec<[*mut u8; 4]> = std::iter::once(window).chain(others).collect();
        let scratch = space.wrapping_add(self.window + self.partial);
        // SAFETY: `io` is what this was prepared for; each thread has its own scratch memory.
        let io = unsafe { Io::new(&inputs, &outputs, scratch) };
        passes.try_for_each(|(pass, row)| pass.run(&io, row, scratch))
    }

    /// The pass for a number of rows.
    fn pass(&self, rows: usize) -> &Pass {
        let known = self.passes.iter().find(|(count, _)| *count == rows);
        &known.expect("a pass for every number of rows").1
    }

    /// Runs the links for a piece, and folds it.
    fn run_piece(
        &self,
        cut: &Cut,
        io: &Io,
        unit: usize,
        piece: Range<usize>,
        space: *mut u8,
    ) -> Result<()> {
        let rows = cut.rows(&piece);
        let window = self.window(io, rows.start, space);
        let passes = cut.blocks(rows).map(|block| (self.pass(block.len()), block.start));
        self.run_links(passes, io, window, space)?;
        let inputs = [window.cast_const()];
        let outputs = [io.output(0), space.wrapping_add(self.window)];
        // SAFETY: as above; the parts of the reduction read this piece alone.
        let io = unsafe { Io::new(&inputs, &outputs, io.scratch()) };
        let job = match cut.columns() {
            Some(columns) => Job::Take { start: piece.start / columns, end: piece.end / columns },
            None => Job::Fold,
        };
        cut.tasks(unit).for_each(|tasks| self.reducer.part(&io, job, tasks));
        Ok(())
    }

    fn run_whole(&self, io: &Io, space: *mut u8) -> Result<()> {
        let window = self.window(io, 0, space);
        self.run_links([(&self.passes[0].1, 0)].into_iter(), io, window, space)?;
        let (inputs, outputs) = ([window.cast_const()], [io.output(0)]);
        // SAFETY: as above.
        self.reducer.run(&unsafe { Io::new(&inputs, &outputs, io.scratch()) })
    }
}

impl Kernel for Reduced {
    fn scratch(&self) -> usize {
        self.reducer.scratch().next_multiple_of(ALIGNMENT) + self.seats * self.space()
    }

    fn threads(&self) -> usize {
        if self.cut.is_some() { self.seats } else { usize::MAX }
    }

    fn bytes(&self) -> usize {
        let passes = self.passes.iter().map(|(_, pass)| pass.bytes());
        size_of_val(self) + passes.sum::<usize>()
    }

    fn run(&self, io: &Io) -> Result<()> {
        let spaces = self.reducer.scratch().next_multiple_of(ALIGNMENT);
        let space = |seat: usize| io.scratch::<u8>().wrapping_add(spaces + seat * self.space());
        let Some(cut) = &self.cut else { return self.run_whole(io, space(0)) };
        team::each_range(cut.units(), 1, self.seats, |mut units, seat| {
            units.try_for_each(|unit| {
                let mut pieces = cut.pieces(unit);
                pieces.try_for_each(|piece| self.run_piece(cut, io, unit, piece, space(seat)))
            })
        })?;
        self.reducer.join(io)
    }
}
