//! The values of a region as matrices, processed one block of rows at a time.

use smallvec::SmallVec;

use crate::kernels::Width;
use crate::ops::Meta;
use crate::ops::region::Region;
use crate::shape::{Shape, memory_order};

/// Elements of a block, such that a few blocks fit into the L1 cache.
pub const BLOCK: usize = 4096;

/// All values as matrices in their common memory order, cut into blocks of rows.
pub struct Stripes {
    /// The rank of whole values.
    rank: usize,
    /// Rows of a whole value.
    pub rows: usize,
    /// Columns of a whole value: 1 unless their number is fixed by the values.
    pub columns: usize,
    /// Whether the number of columns is.
    is_fixed: bool,
    /// One per value.
    parts: Vec<Extent>,
}

/// The part of a matrix that a value covers; it broadcasts along the rest.
#[derive(Clone, Copy, PartialEq)]
enum Extent {
    Whole,
    Row,
    Column,
    One,
}

impl Stripes {
    /// The values of a region without a producer; None where they cannot be seen as such matrices.
    pub fn of(region: &Region, values: &[Meta]) -> Option<Stripes> {
        // The last link's result or, where there are only a consumer and what it reads, that.
        let last = (region.inputs + region.links.len() - 1) * usize::from(!region.links.is_empty());
        let whole = values.get(last).filter(|whole| whole.is_dense())?;
        let order = memory_order(whole.strides.iter().copied());
        let all = extents(whole, &order)?;
        let covered = |value: &Meta| match value == whole {
            true => Some(Extent::Whole),
            false => part(value, &all, &order),
        };
        let parts: Vec<Extent> = values.iter().map(covered).collect::<Option<_>>()?;
        let (numel, has_rows) = (whole.numel(), region.has_rows());
        // All broadcast rows and columns must belong to the same matrix, and rows that links
        // process as a whole must be rows of that matrix.
        let widths = values.iter().zip(&parts).filter_map(|(value, part)| match part {
            Extent::Row => Some(value.numel()),
            Extent::Column => Some(numel / value.numel().max(1)),
            _ => None,
        });
        let widths = widths.chain(whole.shape.last().copied().filter(|_| has_rows));
        let (least, most) = widths.fold((usize::MAX, 1), |(a, b), w| (a.min(w), b.max(w)));
        let is_fixed = least < usize::MAX;
        let are_results = parts[region.inputs..].iter().all(|&part| part == Extent::Whole);
        let fits = (least == most || !is_fixed)
            && are_results
            && most <= BLOCK
            && (whole.is_contiguous() || !has_rows);
        let (rank, rows) = (whole.shape.rank().max(1), numel / most);
        fits.then_some(Stripes { rank, rows, columns: most, is_fixed, parts })
    }

    /// The number of rows processed at a time, such that `width` threads get equal parts.
    pub fn block_rows(&self, width: Width) -> usize {
        let most = (BLOCK / self.columns).max(1);
        match self.rows.div_ceil(most) {
            0 | 1 => most,
            count => self.rows.div_ceil(count.next_multiple_of(width.0)),
        }
    }

    /// The same with `rows` rows, unless another number is fixed.
    pub fn with_rows(self, rows: usize) -> Option<Stripes> {
        let numel = self.rows * self.columns;
        match self.is_fixed {
            true => (self.rows == rows).then_some(self),
            false => Some(Stripes { rows, columns: numel.checked_div(rows)?, ..self }),
        }
    }

    /// Value `v` in a block of `rows` rows, which are along the first axis; columns are along the
    /// last.
    pub fn block(&self, values: &[Meta], v: usize, rows: usize) -> Meta {
        let mut shape = Shape::from_iter(std::iter::repeat_n(1, self.rank));
        if matches!(self.parts[v], Extent::Whole | Extent::Column) {
            shape[0] *= rows;
        }
        if matches!(self.parts[v], Extent::Whole | Extent::Row) {
            shape[self.rank - 1] *= self.columns;
        }
        Meta::new(values[v].dtype, shape)
    }

    /// Bytes from row to row of value `v`.
    pub fn row_bytes(&self, values: &[Meta], v: usize) -> usize {
        let elements = match self.parts[v] {
            Extent::Whole => self.columns,
            Extent::Column => 1,
            Extent::Row | Extent::One => 0,
        };
        elements * values[v].dtype.size()
    }
}

/// The part that a value covers of one with `all` extents along the axes in `order`, as they lie in
/// memory; None for other broadcasts or memory orders.
fn part(value: &Meta, all: &[usize], order: &[usize]) -> Option<Extent> {
    if value.numel() == 1 && all.iter().any(|&extent| extent != 1) {
        return Some(Extent::One);
    }
    let own = extents(value, order)?;
    let leading = own.iter().take_while(|&&extent| extent == 1).count();
    let trailing = own.iter().rev().take_while(|&&extent| extent == 1).count();
    if own[..] == *all {
        Some(Extent::Whole)
    } else if all.ends_with(&own[leading..]) {
        Some(Extent::Row)
    } else {
        all.starts_with(&own[..own.len() - trailing]).then_some(Extent::Column)
    }
}

/// The extents of a value along these axes, with ones for those it lacks; None unless it lies
/// densely in their order.
fn extents(value: &Meta, order: &[usize]) -> Option<SmallVec<[usize; 6]>> {
    let lacks = order.len().checked_sub(value.shape.rank())?;
    let own = |d: usize| Some((value.shape[d.checked_sub(lacks)?], value.strides[d - lacks]));
    let mut step = 1;
    let mut lies = |(extent, stride): (usize, isize)| {
        let fits = extent == 1 || stride == step;
        step *= extent.max(1) as isize;
        fits
    };
    let is_dense = order.iter().rev().filter_map(|&d| own(d)).all(&mut lies);
    is_dense.then(|| order.iter().map(|&d| own(d).map_or(1, |(extent, _)| extent)).collect())
}
