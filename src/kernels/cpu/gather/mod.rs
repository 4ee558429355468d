//! Gather and scatter-add: copying rows by index, and adding them back.

mod backward;
mod forward;
mod indices;
mod places;

use std::ops::Range;

use super::walk::{Walk, dims};
use crate::ops::Meta;
pub use backward::backward;
pub use forward::forward;
pub use indices::Indices;
pub use places::places;

/// The dimensions of a tensor before, within and after a range of axes.
struct Split {
    outer: Walk<1>,
    middle: Walk<1>,
    inner: Walk<1>,
}

impl Split {
    fn new(meta: &Meta, axes: Range<usize>) -> Split {
        let dims = dims([meta]);
        let walk = |range: Range<usize>| Walk::new(dims[range].iter().copied());
        let (start, end) = (axes.start, axes.end);
        Split { outer: walk(0..start), middle: walk(axes), inner: walk(end..dims.len()) }
    }
}

/// The offset of element `at` of a walk.
fn place(walk: &Walk<1>, at: usize) -> isize {
    walk.runs(at..at + 1).next().map_or(0, |([place], _)| place)
}
