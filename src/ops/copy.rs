//! Moving data without computing: copy, cast, fill, concatenation.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Catalog, Family, Kernel, Meta, Metas, Width, exactly};
use crate::error::Result;

/// The same elements in fresh memory, row-major (ONNX Identity).
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

    fn cpu(&self, _io: &[&Meta], _width: Width) -> Result<Arc<dyn Kernel>> {
        unreachable!("the elementwise loops come with the unary family")
    }
}
