//! Changing the element type.

use serde::{Deserialize, Serialize};

use crate::dtype::DType;
use crate::error::Result;
use crate::ops::{Catalog, Family, Meta, Metas, elementwise, exactly};

/// The elements as another dtype (ONNX Cast). Floats round to the nearest; conversion to integers
/// truncates towards zero and clamps to the range (NaN gives 0); integers wrap; bool is whether an
/// element is nonzero.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Cast {
    /// The dtype of the result.
    pub dtype: DType,
}

impl Catalog for Cast {
    fn names() -> Vec<&'static str> {
        vec!["cast"]
    }
}

impl Family for Cast {
    fn name(&self) -> &'static str {
        "cast"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [x] = exactly(self.name(), inputs)?;
        Ok(smallvec::smallvec![elementwise::result(self.dtype, x.shape.clone(), inputs)])
    }

    fn any_output_strides(&self) -> bool {
        true
    }
}
