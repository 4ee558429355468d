//! Moving data without computing: copy, cast, fill, ranges, concatenation.

mod cast;
mod concat;
mod convert;
mod fill;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use cast::Cast;
pub use concat::Concat;
pub use convert::Convert;
pub use fill::{Arange, Fill};

use super::{Catalog, Family, Meta, Metas, exactly};
use crate::error::Result;
use crate::kernels::cpu::loops::{Loop, Operand, identity};
use crate::kernels::{Kernel, Width};

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

    fn cpu(&self, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
        Ok(Arc::new(mover(io[0], io[1], width)))
    }
}

/// A loop that copies elements unchanged.
fn mover(from: &Meta, to: &Meta, width: Width) -> Loop<2> {
    let operands = [Operand::plain(from), Operand::plain(to)];
    Loop::new(identity(to.dtype.size()), operands, width)
}

#[cfg(test)]
mod tests;
