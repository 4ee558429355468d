//! Random numbers: fills, dropout, and the generator's advance.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Catalog, Effects, Family, Kernel, Meta, Metas, Width, exactly, kernel};
use crate::dtype::DType;
use crate::error::{Error, Result};

/// Moves a generator's position forward by a number of 128-bit blocks.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Advance {
    /// How many blocks.
    pub by: u64,
}

impl Catalog for Advance {
    fn names() -> Vec<&'static str> {
        vec!["advance"]
    }
}

impl Family for Advance {
    fn name(&self) -> &'static str {
        "advance"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Metas> {
        let [state] = exactly(self.name(), inputs)?;
        let fits = *state == Meta::new(DType::Int64, [2]);
        crate::ensure!(
            fits,
            Error::shape(self.name(), [&state.shape], "an int64 tensor of shape (2,)")
        );
        Ok(smallvec::smallvec![state.clone()])
    }

    fn effects(&self) -> Effects {
        Effects::updates(&[(0, 0)])
    }

    fn cpu(&self, _io: &[&Meta], _width: Width) -> Result<Arc<dyn Kernel>> {
        let by = self.by as i64;
        Ok(kernel(0, move |io| {
            // SAFETY: the state is two int64.
            #[allow(unsafe_code)]
            let state = unsafe { io.write::<i64>(0, 2) };
            state[1] = state[1].wrapping_add(by);
            Ok(())
        }))
    }
}
