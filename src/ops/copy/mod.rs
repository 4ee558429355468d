//! Moving data without computing: copy, cast, fill, ranges, concatenation.

mod cast;
mod concat;
mod convert;
mod fill;

use serde::{Deserialize, Serialize};

pub use cast::Cast;
pub use concat::Concat;
pub use convert::Convert;
pub use fill::{Arange, Fill};

use super::{Catalog, Family, Meta, Metas, exactly};
use crate::error::Result;

/// The same elements in new memory, row-major (ONNX Identity).
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Copy;

impl Catalog for Copy {
    fn names() -> Vec<&'static str> {
        vec!["copy"]
    }
}

impl Family for Copy {
    fn name(&self) -> &'static str {
        "copy"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [x] = exactly(self.name(), inputs)?;
        Ok(smallvec::smallvec![Meta::new(x.dtype, x.shape.clone())])
    }

    fn any_output_strides(&self) -> bool {
        true
    }
}
