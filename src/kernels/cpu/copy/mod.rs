//! Moving data without computing: copy, cast, fill, ranges, concatenation.

mod cast;
mod concat;
mod convert;
mod fill;

pub use cast::cast;
pub use concat::concat;
pub use convert::convert;
pub use fill::{arange, fill};

use super::loops::{Loop, Operand, identity};
use crate::kernels::Width;
use crate::ops::Meta;

/// A loop that copies elements unchanged.
pub fn mover(from: &Meta, to: &Meta, width: Width) -> Loop<2> {
    let operands = [Operand::plain(from), Operand::plain(to)];
    Loop::new(identity(to.dtype.size()), operands, width)
}
