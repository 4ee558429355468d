//! Non-finite numbers: which operation produced them, and from which inputs.

use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

use crate::dtype::DType;
use crate::shape::Shape;

/// Statistics of a tensor's elements.
#[derive(Debug, Clone, PartialEq)]
pub struct Statistics {
    /// The element type.
    pub dtype: DType,
    /// The tensor's shape.
    pub shape: Shape,
    /// How many elements are NaN.
    pub nans: usize,
    /// How many elements are infinite.
    pub infinities: usize,
    /// The smallest finite element; infinity if there are none.
    pub least: f64,
    /// The largest finite element; minus infinity if there are none.
    pub greatest: f64,
    /// The mean of the finite elements; NaN if there are none.
    pub mean: f64,
}

impl Statistics {
    /// Whether every number is finite.
    pub fn is_finite(&self) -> bool {
        self.nans == 0 && self.infinities == 0
    }
}

impl Display for Statistics {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Statistics { dtype, shape, nans, infinities, least, greatest, mean } = self;
        write!(f, "{dtype} {shape}: ")?;
        if !self.is_finite() {
            write!(f, "{nans} NaN, {infinities} infinite; ")?;
        }
        match least <= greatest {
            true => write!(f, "from {least:.6e} to {greatest:.6e}, mean {mean:.6e}"),
            false => write!(f, "no finite numbers"),
        }
    }
}

/// An operation that produced a NaN or an infinity.
#[derive(Debug, Clone, PartialEq)]
pub struct NotFinite {
    /// The operation's name.
    pub operation: &'static str,
    /// The line of the user's program that requested it, if known.
    pub line: Option<Arc<str>>,
    /// Statistics of its inputs, taken before it ran.
    pub inputs: Vec<Statistics>,
    /// Statistics of its outputs.
    pub outputs: Vec<Statistics>,
}

impl Display for NotFinite {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "the first operation that made a NaN or an infinity")?;
        let lists = [("input", &self.inputs), ("output", &self.outputs)];
        for (name, list) in lists {
            for (i, statistics) in list.iter().enumerate() {
                write!(f, "\n  {name} {i}: {statistics}")?;
            }
        }
        Ok(())
    }
}
