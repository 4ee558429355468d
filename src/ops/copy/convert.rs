//! Changing the element type without losing a value.

use serde::{Deserialize, Serialize};

use super::Cast;
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::{Catalog, Family, Meta, Metas};

/// The elements as another dtype, which must represent them: floats round to floats, and stay
/// finite; everything else is exact. An element that the dtype cannot represent is an
/// [`Error::DType`](crate::Error::DType), before anything is written.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Convert {
    /// The dtype of the result.
    pub dtype: DType,
}

impl Catalog for Convert {
    fn names() -> Vec<&'static str> {
        vec!["convert"]
    }
}

impl Family for Convert {
    fn name(&self) -> &'static str {
        "convert"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        Cast { dtype: self.dtype }.infer(inputs)
    }

    fn any_output_strides(&self) -> bool {
        true
    }

    fn checked(&self) -> &'static [usize] {
        &[0]
    }
}
