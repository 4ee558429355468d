//! The values of a chain as matrices, which are worked on a block of rows after the other.

use crate::ops::chain::Chain;
use crate::ops::{Meta, Width};
use crate::shape::Shape;

/// Elements of a block: what a few of them take fits into the first cache.
const BLOCK: usize = 4096;

/// All values as matrices, in the memory order that they share.
pub struct Space {
    /// How many axes whole values have.
    rank: usize,
    /// Rows of a whole value.
    pub rows: usize,
    /// Its columns.
    columns: usize,
    /// Whether there can be no other number of them.
    is_fixed: bool,
    /// By value.
    parts: Vec<Part>,
}

/// How much of a matrix a value is; it is repeated along the rest.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Whole,
    Row,
    Column,
    One,
}

impl Space {
    /// The inputs and all links' results; None where they do not lie like that.
    pub fn of(chain: &Chain, values: &[Meta]) -> Option<Space> {
        let whole = values.last().filter(|whole| whole.is_dense())?;
        let parts: Vec<Part> = values.iter().map(|v| part(v, whole)).collect::<Option<_>>()?;
        let (numel, has_rows) = (whole.numel(), chain.has_rows(values));
        // Every row and every column that is repeated must be of the same matrix, and the rows that
        // are worked on as a whole be those of it.
        let widths = values.iter().zip(&parts).filter_map(|(value, part)| match part {
            Part::Row => Some(value.numel()),
            Part::Column => Some(numel / value.numel().max(1)),
            _ => None,
        });
        let widths = widths.chain(whole.shape.last().copied().filter(|_| has_rows));
        let (least, most) = widths.fold((usize::MAX, 1), |(a, b), w| (a.min(w), b.max(w)));
        let is_fixed = least < usize::MAX;
        let are_results = parts[chain.inputs..].iter().all(|&part| part == Part::Whole);
        let fits = (least == most || !is_fixed)
            && are_results
            && most <= BLOCK
            && (whole.is_contiguous() || !has_rows);
        let (rank, rows) = (whole.shape.rank().max(1), numel / most);
        fits.then_some(Space { rank, rows, columns: most, is_fixed, parts })
    }

    /// How many rows are worked on at a time, so that so many threads have equal parts.
    pub fn block_rows(&self, width: Width) -> usize {
        let most = (BLOCK / self.columns).max(1);
        match self.rows.div_ceil(most) {
            0 | 1 => most,
            count => self.rows.div_ceil(count.next_multiple_of(width.0)),
        }
    }

    /// The same with so many rows, if it need not have just those that it has.
    pub fn with_rows(self, rows: usize) -> Option<Space> {
        let numel = self.rows * self.columns;
        match self.is_fixed {
            true => (self.rows == rows).then_some(self),
            false => Some(Space { rows, columns: numel.checked_div(rows)?, ..self }),
        }
    }

    /// The value `v` in a block of `rows`, which are along the first axis; columns are along the last.
    pub fn block(&self, values: &[Meta], v: usize, rows: usize) -> Meta {
        let mut shape = Shape::from_iter(std::iter::repeat_n(1, self.rank));
        if matches!(self.parts[v], Part::Whole | Part::Column) {
            shape[0] *= rows;
        }
        if matches!(self.parts[v], Part::Whole | Part::Row) {
            shape[self.rank - 1] *= self.columns;
        }
        Meta::new(values[v].dtype, shape)
    }

    /// Bytes from a row of value `v` to the next.
    pub fn row_bytes(&self, values: &[Meta], v: usize) -> usize {
        let elements = match self.parts[v] {
            Part::Whole => self.columns,
            Part::Column => 1,
            Part::Row | Part::One => 0,
        };
        elements * values[v].dtype.size()
    }
}

/// How much of another one a value is; None where it is repeated otherwise, or lies otherwise.
fn part(value: &Meta, whole: &Meta) -> Option<Part> {
    if value.shape == whole.shape && value.strides == whole.strides {
        return Some(Part::Whole);
    }
    if value.numel() == 1 {
        return Some(Part::One);
    }
    let lies = value.is_contiguous() && whole.is_contiguous();
    let (own, all) = (&value.shape[..], &whole.shape[..]);
    let leading = own.iter().take_while(|&&extent| extent == 1).count();
    let tail = &own[leading..];
    if lies && all.ends_with(tail) {
        return Some(Part::Row);
    }
    let trailing = own.iter().rev().take_while(|&&extent| extent == 1).count();
    let head = &own[..own.len() - trailing];
    (lies && own.len() == all.len() && all.starts_with(head)).then_some(Part::Column)
}
