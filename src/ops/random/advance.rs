//! Moving a generator forward.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::check_state;
use crate::error::Result;
use crate::kernels::{Kernel, Width, kernel};
use crate::ops::{Catalog, Effects, Family, Meta, Metas, exactly};

/// (state): moves a generator's position forward by a number of 128-bit blocks.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Advance {
    /// The number of blocks.
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
        check_state(self.name(), state)?;
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
