//! Choosing between elements.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Catalog, Family, Meta, Metas, Reach, elementwise, exactly};
use crate::dtype::{Bool, DType};
use crate::error::{Error, Result};
use crate::kernels::cpu::isa::{Isa, Least, Level};
use crate::kernels::cpu::loops::{Loop, Map3, Operand, map3};
use crate::kernels::{Kernel, Width};

/// a where the condition (bool) holds, b elsewhere (ONNX Where); all three broadcast, and a and b
/// have the same dtype.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Where;

impl Catalog for Where {
    fn names() -> Vec<&'static str> {
        vec!["where"]
    }
}

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

    fn reach(&self, _rank: usize) -> Reach {
        Reach::Element
    }

    fn any_output_strides(&self) -> bool {
        true
    }

    fn cpu(&self, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
        let isa = Isa::active();
        // Only bits are moved, so the size of the dtype is all that matters.
        let tile = match io[1].dtype.size() {
            1 => map3::<Bool, u8, u8, u8>(isa, Choose),
            2 => map3::<Bool, u16, u16, u16>(isa, Choose),
            4 => map3::<Bool, u32, u32, u32>(isa, Choose),
            _ => map3::<Bool, u64, u64, u64>(isa, Choose),
        };
        let operands = [0, 1, 2, 3].map(|i| Operand::plain(io[i]));
        Ok(Arc::new(Loop::new(tile, operands, width)))
    }
}

struct Choose;

impl<T: Copy> Map3<Bool, T, T, T> for Choose {
    type Reach = Least;
    #[inline(always)]
    fn at<L: Level>(&self, condition: Bool, a: T, b: T) -> T {
        if condition.get() { a } else { b }
    }
}

#[cfg(test)]
mod tests;
