//! How the links' last result is cut into pieces that a reduction folds one after the other.

use std::ops::Range;

use smallvec::SmallVec;

use super::pass::Pass;
use super::stripes::{BLOCK, Stripes};
use crate::error::Result;
use crate::kernels::Width;
use crate::kernels::cpu::reduce::{Course, Reducer};
use crate::ops::Meta;
use crate::ops::region::Region;

/// Elements of a piece: a few pieces fit into the L2 cache.
const PIECE: usize = 4 * BLOCK;
/// Elements of the longest row that is a piece of its own.
const LONGEST: usize = 2 * PIECE;
/// With fewer units, threads would be idle that could run the links alone.
const UNITS: usize = 8;

/// The links' kernels, by the number of rows that they process.
pub type Passes = SmallVec<[(usize, Pass); 3]>;

/// Units, each of which one thread processes, of pieces of elements, which lie side by side.
pub struct Cut {
    stripes: Stripes,
    course: Course,
    /// The outputs of a unit, or the rows of a piece.
    group: usize,
    /// Elements that the links process at a time: fewer, the more results lie between them.
    block: usize,
}

impl Cut {
    /// A cut of the last of these values, the links'; None if they cannot be processed so, or
    /// fewer threads could than process them apart. `keeps`: values are written as a whole, too, so
    /// that no two pieces may share a row.
    pub fn of(links: &Region, values: &[Meta], reducer: &Reducer, keeps: bool) -> Option<Cut> {
        let stripes = Stripes::of(links, values).filter(|_| !links.has_rows())?;
        let (course, width) = (reducer.course()?, stripes.columns);
        let numel = values.last()?.numel();
        let (group, fits) = match course {
            Course::Rows { length, blocks: 1, .. } => {
                // As many outputs as end where a row does.
                let least = (width / length.max(1)).max(1);
                let count = (PIECE / length.max(1) / least).max(1) * least;
                (count, (least * length).is_multiple_of(width))
            }
            Course::Rows { length, block, .. } => {
                let is_aligned = block.is_multiple_of(width) && length.is_multiple_of(width);
                (1, is_aligned || !keeps && width <= block / 4)
            }
            Course::Columns { columns, .. } => {
                let fits = columns <= LONGEST && columns.is_multiple_of(width);
                ((PIECE / columns.max(1)).max(1), fits)
            }
        };
        let block = (PIECE / links.links.len().next_power_of_two()).max(BLOCK);
        let cut = Cut { stripes, course, group, block };
        let is_parallel = cut.units() >= UNITS || numel <= PIECE;
        (fits && numel > 0 && is_parallel).then_some(cut)
    }

    /// The number of units.
    pub fn units(&self) -> usize {
        match self.course {
            Course::Rows { outputs, blocks: 1, .. } => outputs.div_ceil(self.group),
            Course::Rows { outputs, blocks, .. } => outputs * blocks,
            Course::Columns { blocks, .. } => blocks,
        }
    }

    /// The pieces of a unit, in order.
    pub fn pieces(&self, unit: usize) -> impl Iterator<Item = Range<usize>> {
        let (elements, step) = match self.course {
            Course::Rows { outputs, length, blocks: 1, .. } => {
                let group = part(unit, self.group, outputs);
                (group.start * length..group.end * length, self.group * length)
            }
            Course::Rows { length, blocks, block, .. } => {
                let part = part(unit % blocks, block, length);
                let first = unit / blocks * length;
                (first + part.start..first + part.end, block)
            }
            Course::Columns { rows, columns, block, .. } => {
                let part = part(unit, block, rows);
                (part.start * columns..part.end * columns, self.group * columns)
            }
        };
        let end = elements.end;
        elements.step_by(step.max(1)).map(move |start| start..end.min(start + step))
    }

    /// The tasks of the reduction that fold a unit.
    pub fn tasks(&self, unit: usize) -> impl Iterator<Item = Range<usize>> {
        let (first, step, count) = match self.course {
            Course::Rows { outputs, blocks: 1, .. } => (part(unit, self.group, outputs), 0, 1),
            Course::Rows { .. } => (unit..unit + 1, 0, 1),
            Course::Columns { columns, blocks, tile, .. } => {
                (unit..unit + 1, blocks, columns.div_ceil(tile))
            }
        };
        (0..count).map(move |n| first.start + n * step..first.end + n * step)
    }

    /// The rows of the links' values that a piece lies in.
    pub fn rows(&self, piece: &Range<usize>) -> Range<usize> {
        piece.start / self.stripes.columns..piece.end.div_ceil(self.stripes.columns)
    }

    /// These rows in blocks, which the links process one after the other.
    pub fn blocks(&self, rows: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let (step, end) = ((self.block / self.stripes.columns).max(1), rows.end);
        rows.step_by(step).map(move |start| start..end.min(start + step))
    }

    /// The number of outputs that are folded together, row by row; None if outputs are folded one
    /// at a time.
    pub fn columns(&self) -> Option<usize> {
        match self.course {
            Course::Rows { .. } => None,
            Course::Columns { columns, .. } => Some(columns),
        }
    }

    /// Elements of a row of the links' values.
    pub fn width(&self) -> usize {
        self.stripes.columns
    }

    /// The most rows of a piece.
    pub fn most_rows(&self) -> usize {
        let pieces = (0..self.units()).flat_map(|unit| self.pieces(unit));
        pieces.map(|piece| self.rows(&piece).len()).max().unwrap_or(0)
    }

    /// Prepares the links for each number of rows that occurs.
    ///
    /// # Errors
    /// Those of the operations.
    pub fn passes(&self, links: &Region, values: &[Meta]) -> Result<Passes> {
        let mut passes = Passes::new();
        let pieces = (0..self.units()).flat_map(|unit| self.pieces(unit));
        for block in pieces.flat_map(|piece| self.blocks(self.rows(&piece))) {
            let rows = block.len();
            if passes.iter().any(|(known, _)| *known == rows) {
                continue;
            }
            let metas: Vec<Meta> =
                (0..values.len()).map(|v| self.stripes.block(values, v, rows)).collect();
            let step = |v| self.stripes.row_bytes(values, v);
            passes.push((rows, Pass::new(links, &metas, step, Width::ONE)?));
        }
        Ok(passes)
    }
}

/// Part `n` of `0..len` in parts of `size`.
fn part(n: usize, size: usize, len: usize) -> Range<usize> {
    n * size..len.min((n + 1) * size)
}
