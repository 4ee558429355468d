//! Choosing between elements.

use serde::{Deserialize, Serialize};

use super::{Family, Meta, Metas, elementwise, exactly};
use crate::dtype::DType;
use crate::error::{Error, Result};

/// a where the condition (bool) holds, b elsewhere (ONNX Where); all three broadcast, and a and b
/// have the same dtype.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Where;

catalog!(Where => "where");

impl Family for Where {
    fn name(&self) -> &'static str {
        "where"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [condition, a, b] = exactly(self.name(), inputs)?;
        let fits = condition.dtype == DType::Bool && a.dtype == b.dtype;
        let dtypes = inputs.iter().map(|m| m.dtype);
        let want = "a bool condition and two tensors of one dtype";
        crate::ensure!(fits, Error::dtype(self.name(), dtypes, want));
        let shape = elementwise::common_shape(self.name(), inputs)?;
        Ok(smallvec::smallvec![elementwise::result(a.dtype, shape, &[a, b, condition])])
    }

    fn in_place(&self) -> &'static [(usize, usize)] {
        &[(0, 0), (1, 0), (2, 0)]
    }

    element_by_element!();

    moves_only!();
}
