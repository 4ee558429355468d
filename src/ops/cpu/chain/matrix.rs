//! The values of a chain as matrices, which are worked on a block of rows after the other.

use crate::ops::Meta;

/// Elements of a block: what a few of them take fits into the first cache.
pub(super) const BLOCK: usize = 4096;

/// All values as matrices, in the memory order that they share.
pub struct Space {
    /// Rows of a whole value.
    pub rows: usize,
    /// Its columns.
    pub columns: usize,
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
    pub fn of(values: &[Meta], inputs: usize) -> Option<Space> {
        let whole = values.last().filter(|whole| whole.is_dense())?;
        let parts: Vec<Part> = values.iter().map(|v| part(v, whole)).collect::<Option<_>>()?;
        let numel = whole.numel();
        // Every row and every column that is repeated must be of the same matrix.
        let widths = values.iter().zip(&parts).filter_map(|(value, part)| match part {
            Part::Row => Some(value.numel()),
            Part::Column => Some(numel / value.numel().max(1)),
            _ => None,
        });
        let (least, most) = widths.fold((usize::MAX, 1), |(a, b), w| (a.min(w), b.max(w)));
        let is_one_matrix = least == most || least == usize::MAX;
        let are_results = parts[inputs..].iter().all(|&part| part == Part::Whole);
        let fits = is_one_matrix && are_results && most <= BLOCK;
        fits.then(|| Space { rows: numel / most, columns: most, parts })
    }

    /// The same with so many rows, if no value is repeated along others.
    pub fn with_rows(self, rows: usize) -> Option<Space> {
        let is_repeated = self.parts.iter().any(|part| matches!(part, Part::Row | Part::Column));
        let numel = self.rows * self.columns;
        match is_repeated {
            true => (self.rows == rows).then_some(self),
            false => Some(Space { rows, columns: numel.checked_div(rows)?, ..self }),
        }
    }

    /// The value `v` in a block of `rows`.
    pub fn block(&self, values: &[Meta], v: usize, rows: usize) -> Meta {
        let shape = match self.parts[v] {
            Part::Whole => [rows, self.columns],
            Part::Row => [1, self.columns],
            Part::Column => [rows, 1],
            Part::One => [1, 1],
        };
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
