//! Numbers that are not finite, and what the operation that made them was given.

use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

use crate::dtype::DType;
use crate::shape::Shape;

/// What the numbers of a tensor are like.
#[derive(Debug, Clone, PartialEq)]
pub struct Statistics {
    /// Their type.
    pub dtype: DType,
    /// The tensor's shape.
    pub shape: Shape,
    /// How many are not a number.
    pub nans: usize,
    /// How many are infinite.
    pub infinities: usize,
    /// The least of the finite ones; infinity where there are none.
    pub least: f64,
    /// The greatest of the finite ones; minus infinity where there are none.
    pub greatest: f64,
    /// The mean of the finite ones; not a number where there are none.
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

/// An operation that made a NaN or an infinity.
#[derive(Debug, Clone, PartialEq)]
pub struct NotFinite {
    /// The operation's name.
    pub operation: &'static str,
    /// Where the user's program asked for it, if that is known.
    pub line: Option<Arc<str>>,
    /// Of its inputs as it found them.
    pub inputs: Vec<Statistics>,
    /// Of its outputs.
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
