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

/// How many chunks of units keep a thread busy until the end, though some come late.
const CHUNKS_OF_SEAT: usize = 8;

/// Whether a region that ends with a reduction is processed piece by piece; `values` are the metas
/// of all its values.
pub fn is_cut(region: &Region, reduction: &Reduce, values: &[Meta]) -> bool {
    let (links, result) = (region.before_consumer(), values.len() - 1);
    let io = [&values[result - 1], &values[result]];
    let reducer = reduce::reduce(reduction, io, Width::ONE);
    let keeps = region.outputs.len() > 1;
    reducer.is_ok_and(|reducer| Cut::of(&links, &values[..result], &reducer, keeps).is_some())
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
    let (links, kept, result) = (region.before_consumer(), region.keeps_last(), values.len() - 1);
    let made = &values[result - 1];
    let reducer = reduce::reduce(reduction, [made, &values[result]], width)?;
    let values = &values[..result];
    let cut = Cut::of(&links, values, &reducer, region.outputs.len() > 1);
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

    /// Runs the links from `row` on.
    fn run_links(
        &self,
        pass: &Pass,
        io: &Io,
        row: usize,
        window: *mut u8,
        space: *mut u8,
    ) -> Result<()> {
        let inputs: SmallVec<[*const u8; 8]> = (0..io.input_count()).map(|i| io.input(i)).collect();
        let others = self.others.iter().map(|&output| io.output(output));
        let outputs: SmallVec<[*mut u8; 4]> = std::iter::once(window).chain(others).collect();
        let scratch = space.wrapping_add(self.window + self.partial);
        // SAFETY: `io` is what this was prepared for; each thread has its own scratch memory.
        pass.run(&unsafe { Io::new(&inputs, &outputs, scratch) }, row, scratch)
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
        for block in cut.blocks(rows) {
            let known = self.passes.iter().find(|(count, _)| *count == block.len());
            let (_, pass) = known.expect("a pass for every number of rows");
            self.run_links(pass, io, block.start, window, space)?;
        }
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
        self.run_links(&self.passes[0].1, io, 0, window, space)?;
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
        let units = cut.units();
        // Claiming a chunk takes about as long as a short piece.
        let chunks = units.min(CHUNKS_OF_SEAT * self.seats);
        team::each(chunks, self.seats, |chunk, seat| {
            team::share(units, 1, chunks, chunk).try_for_each(|unit| {
                let mut pieces = cut.pieces(unit);
                pieces.try_for_each(|piece| self.run_piece(cut, io, unit, piece, space(seat)))
            })
        })?;
        self.reducer.join(io)
    }
}
