//! Moving a generator forward.

use serde::{Deserialize, Serialize};

use super::check_state;
use crate::error::Result;
use crate::ops::{Effects, Family, Meta, Metas, exactly};

/// (state): moves a generator's position forward by a number of 128-bit blocks.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Advance {
    /// The number of blocks.
    pub by: u64,
}

catalog!(Advance => "advance");

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
}
